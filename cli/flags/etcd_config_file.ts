/**
 * go-etcd's configuration file, which kube-proxy 0.4 takes by `--etcd-config`:
 *
 * ```
 * {"cluster": {"machines": ["https://10.0.0.1:2379"]},
 *  "config": {"certFile": "", "keyFile": "", "caCertFile": [], "timeout": 1}}
 * ```
 *
 * Leader, timeout and consistency are for a client that had none of its own
 * ideas about these.
 *
 * @module
 */

import type { EtcdOptions } from "../../neighbours/etcd/connect.ts";
import { UsageError } from "./usage_error.ts";

/** @throws {UsageError} One line. */
export function parseEtcdConfigFile(path: string, text: string): EtcdOptions {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw refusal(path, `it is no JSON (${(error as Error).message})`);
  }
  const cluster = mapOf(path, document, "cluster");
  const config = mapOf(path, document, "config");
  const servers = textsOf(path, cluster, "machines");
  if (servers.length === 0) throw refusal(path, "cluster.machines is empty");
  const [cert] = textsOf(path, config, "certFile");
  const [key] = textsOf(path, config, "keyFile");
  if ((cert === undefined) !== (key === undefined)) {
    throw refusal(path, "certFile and keyFile belong together");
  }
  const ca = textsOf(path, config, "caCertFile");
  const tls = { cert, key, ca: ca.length === 0 ? undefined : ca };
  return { servers, tls };
}

type Fields = Readonly<Record<string, unknown>>;

function mapOf(path: string, value: unknown, name: string): Fields {
  const inner = (value as Fields | null)?.[name] ?? {};
  if (typeof inner === "object" && !Array.isArray(inner)) {
    return inner as Fields;
  }
  throw refusal(path, `${name} is no map`);
}

/** One text or several; empty ones count as absent. */
function textsOf(path: string, fields: Fields, name: string): string[] {
  const items = [fields[name] ?? []].flat();
  if (items.every((item) => typeof item === "string")) {
    return items.filter((item) => item !== "");
  }
  throw refusal(path, `${name} is no text and no list of texts`);
}

function refusal(path: string, problem: string): UsageError {
  return new UsageError(
    `Cannot use --etcd-config: ${path}: ${problem}, wanted go-etcd's JSON ` +
      'such as {"cluster": {"machines": ["http://10.0.0.1:2379"]}}',
  );
}
