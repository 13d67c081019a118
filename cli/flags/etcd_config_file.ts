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
import {
  DocumentError,
  parseJson,
  withLine,
} from "../../platform/documents/document.ts";
import {
  DocumentMap,
  FieldError,
} from "../../platform/documents/document_map.ts";
import { UsageError } from "./usage_error.ts";

/** @throws {UsageError} One line. */
export function parseEtcdConfigFile(path: string, text: string): EtcdOptions {
  try {
    return readOptions(new DocumentMap(parseJson(text), []));
  } catch (error) {
    if (error instanceof DocumentError) throw refusal(path, error.message);
    if (!(error instanceof FieldError)) throw error;
    throw refusal(path, withLine(text, error));
  }
}

function readOptions(document: DocumentMap): EtcdOptions {
  const cluster = document.map("cluster");
  const config = document.map("config");
  const servers = textsIn(cluster, "machines");
  if (servers.length === 0) {
    throw new FieldError(["cluster", "machines"], "there is none");
  }
  const [cert] = textsIn(config, "certFile");
  const [key] = textsIn(config, "keyFile");
  if ((cert === undefined) !== (key === undefined)) {
    throw new FieldError(["config"], "certFile and keyFile belong together");
  }
  const ca = textsIn(config, "caCertFile");
  const tls = { cert, key, ca: ca.length === 0 ? undefined : ca };
  return { servers, tls };
}

/** One text or several; empty ones count as absent. */
function textsIn(fields: DocumentMap | undefined, key: string): string[] {
  const value = fields?.value(key);
  const texts = Array.isArray(value)
    ? fields!.texts(key)!.map(([text]) => text)
    : [fields?.text(key) ?? ""];
  return texts.filter((text) => text !== "");
}

function refusal(path: string, problem: string): UsageError {
  return new UsageError(
    `Cannot use --etcd-config: ${path}: ${problem}, wanted go-etcd's JSON ` +
      'such as {"cluster": {"machines": ["http://10.0.0.1:2379"]}}',
  );
}
