/**
 * Flags of `tunnel server` about its port for the callers of kubelets, and
 * their meaning. Flags about kubelets themselves have kube-apiserver's names.
 *
 * @module
 */

import type { GivenValues } from "../flags/read_flags.ts";
import type { KubeletOptions } from "../../server/options.ts";
import { kubeconfigOf } from "../flags/program_flags.ts";
import {
  keyPair,
  refuseFlags,
  unusable,
  UsageError,
} from "../flags/usage_error.ts";
import { common, flag, type FlagValues, inGroup } from "../flags/flag.ts";
import { given } from "../../platform/documents/given.ts";
import { listenAt } from "../flags/addresses.ts";

/** In the order in which the help shows them. */
export const KUBELET_FLAGS = inGroup("Kubelets (docs/kubernetes.md)", {
  "kubelet-port": common(flag.port(0, {
    help: "Port on which callers with a certificate talk to nodes' kubelets " +
      "over HTTPS; 0 picks a free one.",
    defaultText: "none",
  })),
  "kubelet-bind-address": flag.word("ADDRESS", {
    help: "Address of that port.",
    defaultText: "all interfaces",
  }),
  "kubelet-server-cert": flag.file({
    help: "Certificate shown to callers on that port.",
    defaultText: "--server-cert, or what agents are shown",
  }),
  "kubelet-server-key": flag.file("Private key of --kubelet-server-cert."),
  "kubelet-server-ca-cert": flag.file({
    help: "CA of the certificates that callers must show on that port. A " +
      "caller may do on nodes what --kubelet-client-certificate may.",
    defaultText: "--server-ca-cert",
  }),
  "kubelet-client-certificate": flag.file("Certificate shown to kubelets."),
  "kubelet-client-key": flag.file({
    help: "Private key of --kubelet-client-certificate.",
  }),
  "kubelet-ca-file": flag.file({
    aliases: ["kubelet-certificate-authority"],
    help: "CA of kubelets' certificates, which must name the node or its " +
      "address.",
  }),
  "kubelet-insecure-skip-verify": flag.boolean(false, {
    help:
      "Do not verify kubelets: a program that answers in place of one on a " +
      "node reads and writes what callers send to it, including logs " +
      "and commands.",
  }),
  "kubelet-localhost-ports": flag.list([], {
    help: "Ports that are dialed on the node's loopback, whatever the " +
      "address is. yurttunnel: localhost-proxy-ports.",
  }),
  "kubelet-lookup": flag.boolean(false, {
    help: "Ask the API server (--kubeconfig, or in-cluster) which node a " +
      "pod is on and where that node's kubelet listens; needs get on " +
      "pods and nodes. Without it, the address that callers use names " +
      "the node.",
  }),
});

/** Its own flags, and those of the server that replace missing ones. */
type Flags =
  & FlagValues<typeof KUBELET_FLAGS>
  & {
    readonly [
      Name in "server-cert" | "server-key" | "server-ca-cert" | "kubeconfig"
    ]: string;
  };

/**
 * Combines and checks; absent: no such port is wanted.
 *
 * @throws {UsageError} One line.
 */
export function kubeletOptions(
  { values: flags, given: named }: GivenValues<Flags>,
): KubeletOptions | undefined {
  if (!named.has("kubelet-port")) {
    refuseFlags(
      named,
      (name) => name.startsWith("kubelet-"),
      "without --kubelet-port: it is about that port; add it",
    );
    return undefined;
  }
  const own = keyPair(flags, "kubelet-server-cert", "kubelet-server-key") ??
    keyPair(flags, "server-cert", "server-key");
  const client = keyPair(
    flags,
    "kubelet-client-certificate",
    "kubelet-client-key",
  );
  return given({
    address: listenAt(flags, "kubelet-bind-address", "kubelet-port"),
    keyPair: own,
    callerCaFile: callerCa(flags),
    clientKeyPair: client,
    kubeletCaFile: kubeletCa(flags),
    localhostPorts: flags["kubelet-localhost-ports"].map(portOf),
    lookups: flags["kubelet-lookup"] ? kubeconfigOf(flags) : undefined,
  });
}

/** Never the CA that nodes have their certificates of: a node is no caller. */
function callerCa(flags: Flags): string {
  const caFile = flags["kubelet-server-ca-cert"] || flags["server-ca-cert"];
  if (caFile !== "") return caFile;
  throw new UsageError(
    "Cannot authenticate callers of kubelets: give " +
      "--kubelet-server-ca-cert, the CA of the certificates that they show",
  );
}

function kubeletCa(flags: Flags): string | undefined {
  const caFile = flags["kubelet-ca-file"];
  const skips = flags["kubelet-insecure-skip-verify"];
  if (caFile !== "" && skips) {
    throw new UsageError(
      "Cannot use --kubelet-ca-file together with " +
        "--kubelet-insecure-skip-verify: kubelets are either verified or not; " +
        "remove one of them",
    );
  }
  if (caFile !== "" || skips) return caFile || undefined;
  throw new UsageError(
    "Cannot verify kubelets without --kubelet-ca-file: give the CA of their " +
      "certificates, or accept the risk with --kubelet-insecure-skip-verify",
  );
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^[0-9]{1,5}$/.test(text) && port >= 1 && port <= 65_535) return port;
  const wanted = "ports (1 to 65535) separated by commas";
  throw unusable("--kubelet-localhost-ports", text, wanted);
}
