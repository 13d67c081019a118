/**
 * How kube-proxy 0.4 is let in by the API server of `--master`, under its names
 * (client.BindClientConfigFlags).
 *
 * @module
 */

import type { KubernetesOptions } from "../../neighbours/kubernetes/connect.ts";
import { UsageError } from "./usage_error.ts";
import { fileFlag, type FlagValues, inGroup } from "./flag.ts";
import { MASTER_IDLE_FLAGS } from "./idle_flags.ts";

/** See the module description. */
export const API_SERVER_FLAGS = inGroup("The API server of --master", {
  "certificate-authority": fileFlag({
    help: "CA of its certificate (PEM).",
    defaultText: "public ones",
  }),
  "client-certificate": fileFlag({ help: "Certificate shown to it (PEM)." }),
  "client-key": fileFlag({
    help: "Private key of --client-certificate (PEM).",
  }),
  ...MASTER_IDLE_FLAGS,
});

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
    );
  }
  const [ca, cert, key] = FILES.map((name) => values[name] || undefined);
  if ((cert === undefined) !== (key === undefined)) {
    throw new UsageError(
      `Cannot use --${cert === undefined ? FILES[2] : FILES[1]} alone: a ` +
        "certificate goes with its key; give both",
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
