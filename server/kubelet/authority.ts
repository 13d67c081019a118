/**
 * `host:port`, as a Host header and its like write it.
 *
 * @module
 */

import { isIP } from "node:net";
import { hostPort } from "../../proto/peer/host_port.ts";
import { MessageError, quote } from "../../net/http1/message_error.ts";

/** A host without brackets, and a port in 1–65535. */
export interface HttpAuthority {
  readonly host: string;
  readonly port: number;
}

const AUTHORITY = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9A-Za-z._-]+)):([0-9]{1,5})$/;

/**
 * Reads `text`.
 *
 * @param header Where it stood, for the error.
 * @throws {MessageError}
 */
export function parseAuthority(text: string, header: string): HttpAuthority {
  const match = AUTHORITY.exec(text);
  const port = Number(match?.[3] ?? 0);
  const host = match?.[1] ?? match?.[2] ?? "";
  if (
    port < 1 || port > 65_535 || (match?.[1] !== undefined && isIP(host) !== 6)
  ) {
    throw new MessageError(
      400,
      `Cannot use the header ${header}: saw ${quote(text)}, wanted ` +
        "host:port, IPv6 in brackets",
    );
  }
  return { host, port };
}

/** The other way round. */
export function authorityText({ host, port }: HttpAuthority): string {
  return hostPort(host, port);
}
