/**
 * Where a server is, as one of them says it to agents and to other servers.
 *
 * @module
 */

import { hostOf, portOf } from "./host_port.ts";

/** A name of DNS, brackets or not, and a port. */
const ADDRESS_MAX = 270;

const HOST = /^(?:[0-9A-Za-z._-]+|[0-9A-Fa-f:.]+(?:%[0-9A-Za-z]+)?)$/;

/** Whether it is a `HOST:PORT` to which somebody can connect. */
export function isAddress(text: string): boolean {
  if (text.length > ADDRESS_MAX || !/:\d{1,5}$/.test(text)) return false;
  const port = portOf(text);
  return port > 0 && port < 65_536 && HOST.test(hostOf(text)) &&
    (!hostOf(text).includes(":") || text.startsWith("["));
}
