/**
 * Addresses of etcd's members, as etcd's own tools take them.
 *
 * @module
 */

import { hostPort, withoutBrackets } from "../../proto/peer/host_port.ts";
import { EtcdConfigError } from "./errors.ts";

/** etcd's port for clients. */
export const CLIENT_PORT = 2379;

/** Where one member is. */
export interface MemberAddress {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

/**
 * Reads `http://HOST[:PORT]`, `https://HOST[:PORT]` or `HOST[:PORT]`.
 *
 * @param isTlsByDefault Without a scheme: whether TLS files were given.
 * @throws {EtcdConfigError} One sentence.
 */
export function parseEtcdMember(
  text: string,
  isTlsByDefault: boolean,
): MemberAddress {
  const withScheme = text.includes("://")
    ? text
    : `${isTlsByDefault ? "https" : "http"}://${text}`;
  const url = URL.parse(withScheme);
  const isTls = url?.protocol === "https:";
  if (
    url === null || !(isTls || url.protocol === "http:") ||
    url.hostname === "" || url.username !== "" || url.search !== "" ||
    url.hash !== "" || !/^\/?$/.test(url.pathname)
  ) {
    throw new EtcdConfigError(
      `Cannot use etcd address "${text}": wanted http://HOST:PORT, ` +
        "https://HOST:PORT or HOST:PORT",
    );
  }
  // URLs forget the port that their scheme has by default.
  const isPortNamed = /:(?:80|443)\/?$/.test(withScheme);
  const byScheme = isTls ? 443 : 80;
  const port = isPortNamed ? byScheme : CLIENT_PORT;
  return {
    host: withoutBrackets(url.hostname),
    port: url.port === "" ? port : Number(url.port),
    isTls,
  };
}

/** For people. */
export function memberName({ host, port, isTls }: MemberAddress): string {
  return `${isTls ? "https" : "http"}://${hostPort(host, port)}`;
}
