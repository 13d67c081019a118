/**
 * How kube-proxy 0.4 is let in by the API server of `--master`, under its names
 * (client.BindClientConfigFlags).
 *
 * @module
 */

import type { KubernetesOptions } from "../../neighbours/kubernetes/connect.ts";
import { UsageError } from "./usage_error.ts";
import { booleanFlag, choiceFlag, fileFlag, type FlagValues } from "./flag.ts";

const GROUP = "The API server of --master";

/** See the module description. */
export const API_SERVER_FLAGS = {
  "certificate-authority": fileFlag({
    group: GROUP,
    help: "CA of its certificate (PEM).",
    defaultText: "public ones",
  }),
  "client-certificate": fileFlag({
    group: GROUP,
    help: "Certificate shown to it (PEM).",
  }),
  "client-key": fileFlag({
    group: GROUP,
    help: "Private key of --client-certificate (PEM).",
  }),
  "api-version": choiceFlag(["v1beta1", "v1beta2", "v1", ""], "", {
    group: GROUP,
    help: "Version of its API; v1 is always used.",
    defaultText: "v1",
    status: { kind: "idle", because: "the API server is spoken to in v1" },
  }),
  "insecure-skip-tls-verify": booleanFlag(false, {
    group: GROUP,
    help: "Refused when true: whoever answers at that address would decide " +
      "where services lead.",
    status: {
      kind: "missing",
      because: "whoever answers at that address would be believed, give " +
        "--certificate-authority in its place",
    },
  }),
} as const;

/** Their values, where a command has them. */
export type ApiServerValues = Partial<FlagValues<typeof API_SERVER_FLAGS>>;

/**
 * @param master The address that `--master` gives; empty: none.
 * @throws {UsageError} One line.
 */
export function apiServerFiles(
  master: string,
  values: ApiServerValues,
): NonNullable<KubernetesOptions["masterFiles"]> {
  const given = FILES.filter((name) => (values[name] ?? "") !== "");
  const [first] = given;
  if (first === undefined) return {};
  if (master === "") {
    throw new UsageError(
      `Cannot use --${first} without --master: it is about the API server ` +
        "there; a kubeconfig names its own",
      "TUN101",
    );
  }
  const [ca, cert, key] = FILES.map((name) => values[name] || undefined);
  if ((cert === undefined) !== (key === undefined)) {
    throw new UsageError(
      `Cannot use --${cert === undefined ? FILES[2] : FILES[1]} alone: a ` +
        "certificate goes with its key; give both",
      "TUN101",
    );
  }
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

const FILES = [
  "certificate-authority",
  "client-certificate",
  "client-key",
] as const;
