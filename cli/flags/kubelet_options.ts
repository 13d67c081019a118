/**
 * Flags of the kubelet front end to options.
 *
 * @module
 */

import type { KubeletOptions } from "../../server/kubelet/options.ts";
import { UsageError } from "../usage_error.ts";
import { keyPair } from "./key_pair.ts";
import type { FlagReading } from "./read_flags.ts";
import type { SERVER_FLAGS } from "./server_flags.ts";

/**
 * Combines and checks; absent: no such port is wanted.
 *
 * @throws {UsageError} One line.
 */
export function kubeletOptions(
  reading: FlagReading<typeof SERVER_FLAGS>,
): KubeletOptions | undefined {
  const { values: flags, given } = reading;
  if (!given.has("kubelet-port")) {
    const idle = [...given].find((name) => name.startsWith("kubelet-"));
    if (idle === undefined) return undefined;
    throw new UsageError(
      `Cannot use --${idle} without --kubelet-port: it is about that port; ` +
        "add it",
    );
  }
  const own = keyPair(
    "kubelet-server-cert",
    flags["kubelet-server-cert"],
    "kubelet-server-key",
    flags["kubelet-server-key"],
  ) ?? frontendsPair(flags);
  const client = keyPair(
    "kubelet-client-certificate",
    flags["kubelet-client-certificate"],
    "kubelet-client-key",
    flags["kubelet-client-key"],
  );
  const lookups = lookupsOf(flags);
  return {
    address: {
      hostname: flags["kubelet-bind-address"],
      port: flags["kubelet-port"],
    },
    ...(own === undefined ? {} : { keyPair: own }),
    callerCaFile: callerCa(flags),
    ...(client === undefined ? {} : { clientKeyPair: client }),
    ...kubeletCa(flags),
    localhostPorts: flags["kubelet-localhost-ports"].map(portOf),
    ...(lookups === undefined ? {} : { lookups }),
  };
}

type Flags = FlagReading<typeof SERVER_FLAGS>["values"];

function frontendsPair(flags: Flags) {
  const pair = [flags["server-cert"], flags["server-key"]] as const;
  return keyPair("server-cert", pair[0], "server-key", pair[1]);
}

/** Never the CA that nodes have their certificates of: a node is no caller. */
function callerCa(flags: Flags): string {
  const caFile = flags["kubelet-server-ca-cert"] || flags["server-ca-cert"];
  if (caFile !== "") return caFile;
  throw new UsageError(
    "Cannot let callers talk to kubelets without knowing them: give " +
      "--kubelet-server-ca-cert, the CA of the certificates that they show",
  );
}

function kubeletCa(flags: Flags): { readonly kubeletCaFile?: string } {
  const caFile = flags["kubelet-ca-file"];
  const skips = flags["kubelet-insecure-skip-verify"];
  if (caFile !== "" && skips) {
    throw new UsageError(
      "Cannot use --kubelet-ca-file together with " +
        "--kubelet-insecure-skip-verify: kubelets are either verified or not; " +
        "remove one of them",
    );
  }
  if (caFile !== "") return { kubeletCaFile: caFile };
  if (skips) return {};
  throw new UsageError(
    "Cannot tell kubelets from impostors without --kubelet-ca-file: give the " +
      "CA of their certificates, or accept the risk with " +
      "--kubelet-insecure-skip-verify",
  );
}

function lookupsOf(flags: Flags): KubeletOptions["lookups"] {
  if (!flags["kubelet-lookup"]) return undefined;
  const { kubeconfig } = flags;
  return kubeconfig === "" ? {} : { kubeconfig };
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^[0-9]{1,5}$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new UsageError(
    `Cannot use --kubelet-localhost-ports: saw "${text}", wanted ports (1 to ` +
      "65535) separated by commas",
  );
}
