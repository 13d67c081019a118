/**
 * The one spelling of a name, an address or a prefix under which agents are
 * granted it, claim it, and are looked up by it.
 *
 * All comparisons use this form. If one reader folded case or a dot and another
 * did not, an agent could use one spelling to take what belongs to another
 * agent under the other spelling.
 *
 * @module
 */

import { isNumericName } from "../identity/node_name.ts";
import {
  formatIpAddress,
  type IpAddress,
  parseIpAddress,
  parseIpPrefix,
} from "./ip_address.ts";

/**
 * The normal form of a host, a uid or an address: addresses as RFC 5952 and
 * dotted quads write them, whatever they were; names in lower case, without the
 * dot that only marks a name as complete.
 */
export function nameKey(text: string): string {
  const address = addressOf(text);
  if (address !== undefined) return formatIpAddress(address);
  return withoutDots(text).toLowerCase();
}

/** The normal form of a prefix; any other text in lower case. */
export function prefixKey(text: string): string {
  const prefix = parseIpPrefix(text);
  return prefix === undefined
    ? text.toLowerCase()
    : `${formatIpAddress(prefix.address)}/${prefix.length}`;
}

/** The normal form of the value of an identifier, or of an agent's `id`. */
export function identifierKey(key: string, value: string): string {
  if (key === "id") return value;
  return key === "cidr" ? prefixKey(value) : nameKey(value);
}

/**
 * The address that `text` means to a dialer, in any spelling: in brackets, with
 * a zone, mapped into IPv6, and in all that inet_aton takes (`127.1`, `0x7f.1`,
 * `017700000001`, `2130706433`).
 */
export function addressOf(text: string): IpAddress | undefined {
  if (text.includes(":")) {
    const bare = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
    return parseIpAddress(bare.split("%", 1)[0]!);
  }
  const first = text.charCodeAt(0);
  // Names begin with a letter nearly always; a tenth of the work then.
  if (!(first >= 0x30 && first <= 0x39)) return undefined;
  return parseIpAddress(text) ?? looseIpv4(withoutDots(text));
}

/**
 * As inet_aton reads it: up to four numbers, the last of which fills the
 * remaining bytes.
 */
function looseIpv4(text: string): IpAddress | undefined {
  if (!isNumericName(text)) return undefined;
  const parts = text.split(".");
  if (parts.length > 4) return undefined;
  const address = new Uint8Array(4);
  for (const [index, part] of parts.entries()) {
    const number = looseNumber(part);
    const isLast = index === parts.length - 1;
    const max = isLast ? 256 ** (4 - index) : 256;
    if (number === undefined || number >= max) return undefined;
    if (!isLast) address[index] = number;
    else new DataView(address.buffer).setUint32(0, number + bitsOf(address));
  }
  return address;
}

function bitsOf(address: Uint8Array<ArrayBuffer>): number {
  return new DataView(address.buffer).getUint32(0);
}

/** C's spellings of a number: hexadecimal, octal, decimal. */
function looseNumber(text: string): number | undefined {
  if (/^0x[0-9a-f]*$/i.test(text)) return Number(`0x0${text.slice(2)}`);
  if (/^0[0-7]*$/.test(text)) return Number(`0o0${text}`);
  return /^[1-9][0-9]*$/.test(text) ? Number(text) : undefined;
}

/**
 * A name of dots only stays as it is. Not `replace(/\.+$/, "")`: it looks at
 * each run of dots from each of its dots, and an unauthenticated peer's hello
 * may have a million of them.
 */
function withoutDots(text: string): string {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === DOT) end--;
  return end === 0 ? text : text.slice(0, end);
}

const DOT = 0x2e;
