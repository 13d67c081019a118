/**
 * An etcd of one member at the addresses that pages name.
 *
 * @module
 */

import { findPeer } from "../../tests/support/program/peers.ts";
import type { DocsStage } from "./docs_stage.ts";

/** What tests look at beside the product. */
export interface Etcd {
  put(key: string, value: string): Promise<void>;
  /** All keys that begin with `prefix`. */
  names(prefix: string): Promise<readonly string[]>;
}

/** Serves on port 2379 of `hosts`, with a certificate of `ca.crt` if by TLS. */
export async function startEtcd(
  stage: DocsStage,
  scheme: "http" | "https",
  hosts: readonly string[],
): Promise<Etcd> {
  const { hub } = stage;
  await stage.issue(hub, "etcd", "server", [...hosts, "127.0.0.1"]);
  const urls = hosts.map((host) => `${scheme}://${host}:2379`).join(",");
  const tls = scheme === "https"
    ? "--cert-file=etcd.crt --key-file=etcd.key"
    : "";
  await hub.start(
    `${await findPeer("etcd")} --name=one --data-dir=etcd --log-level=info ` +
      `--unsafe-no-fsync --listen-client-urls=${urls} ` +
      `--advertise-client-urls=${urls} ${tls} ` +
      "--listen-peer-urls=http://127.0.0.1:2380 " +
      "--initial-advertise-peer-urls=http://127.0.0.1:2380 " +
      "--initial-cluster=one=http://127.0.0.1:2380",
    /ready to serve client requests/,
  );
  const client = Deno.createHttpClient({ caCerts: [stage.authority.cert] });
  const call = async (path: string, body: object) => {
    const response = await fetch(`${scheme}://${hosts[0]}:2379${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      client,
    });
    if (!response.ok) throw new Error(await response.text());
    return await response.json();
  };
  return {
    put: async (key, value) => {
      await call("/v3/kv/put", { key: btoa(key), value: btoa(value) });
    },
    names: async (prefix) => {
      const end = prefix.slice(0, -1) +
        String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
      const { kvs = [] } = await call("/v3/kv/range", {
        key: btoa(prefix),
        range_end: btoa(end),
        keys_only: true,
      }) as { kvs?: readonly { readonly key: string }[] };
      return kvs.map(({ key }) => atob(key));
    },
  };
}
