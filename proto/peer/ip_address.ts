/**
 * IP addresses and prefixes as bytes, so that equal addresses compare equal
 * however they were written (`::1`, `0:0:0:0:0:0:0:1`, `::ffff:10.0.0.1`).
 *
 * @module
 */

/** 4 bytes for IPv4, 16 for IPv6. */
export type IpAddress = Uint8Array;

/** A routing prefix such as `10.0.0.0/8`; bits behind it are zero. */
export interface IpPrefix {
  readonly address: IpAddress;
  readonly length: number;
}

/**
 * Reads an address. IPv4-mapped IPv6 (`::ffff:a.b.c.d`) becomes IPv4, because
 * that is the host it names; zone ids (`%eth0`) are not addresses.
 *
 * @returns `undefined` when `text` is not an IP address.
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  return text.includes(":") ? parseIpv6(text) : parseIpv4(text);
}

/** Whether {@linkcode parseIpAddress} reads it; costs a tenth for IPv4. */
export function isIpAddress(text: string): boolean {
  return IPV4_TEXT.test(text) || parseIpAddress(text) !== undefined;
}

/** Writes an address in its canonical form (RFC 5952 for IPv6). */
export function formatIpAddress(address: IpAddress): string {
  if (address.length === 4) return address.join(".");
  // The URL parser of the platform implements RFC 5952's compression.
  const groups = Array.from({ length: 8 }, (_, index) => group(address, index));
  return new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1);
}

/** The canonical spelling of an IP address; any other text unchanged. */
export function canonicalIp(text: string): string {
  const address = parseIpAddress(text);
  return address === undefined ? text : formatIpAddress(address);
}

/**
 * Whether an address is of this machine, and no other machine reaches it:
 * 127.0.0.0/8 and ::1.
 *
 * A listener there needs no authentication, and a connection to it needs no
 * TLS. So this function is the only answer, and text that {@linkcode
 * parseIpAddress} cannot read is not loopback.
 *
 * @param address As text in any spelling, with or without brackets.
 */
export function isLoopback(address: string | IpAddress): boolean {
  const bytes = typeof address === "string"
    ? parseIpAddress(address.replace(/^\[(.*:.*)\]$/, "$1"))
    : address;
  if (bytes?.length === 4) return bytes[0] === 127;
  return bytes?.length === 16 &&
    bytes.every((byte, at) => byte === (at === 15 ? 1 : 0));
}

/**
 * Like {@linkcode isLoopback}, for text that may also be the name `localhost`.
 *
 * Names below it, and `localhost.`, do not count, whatever RFC 6761 §6.3 says:
 * the resolvers of many machines ask DNS for them, where another machine
 * answers.
 */
export function isLoopbackHost(host: string): boolean {
  return host.toLowerCase() === "localhost" || isLoopback(host);
}

/**
 * Reads a prefix; bits behind its length are cleared.
 *
 * @returns `undefined` when `text` is not `address/length`.
 */
export function parseIpPrefix(text: string): IpPrefix | undefined {
  const match = /^([^/]+)\/([0-9]{1,3})$/.exec(text);
  if (match === null) return undefined;
  const address = parseIpAddress(match[1]!);
  const length = Number(match[2]);
  if (address === undefined || length > address.length * 8) return undefined;
  return { address: maskedAddress(address, length), length };
}

/** `address` with the bits behind its first `length` cleared. */
export function maskedAddress(address: IpAddress, length: number): IpAddress {
  return address.map((byte, index) => byte & mask(length, index));
}

/** Whether `address` lies in `prefix`; families never mix. */
export function prefixContains(prefix: IpPrefix, address: IpAddress): boolean {
  return prefix.address.length === address.length &&
    address.every((byte, index) =>
      (byte & mask(prefix.length, index)) === prefix.address[index]
    );
}

/** The bits of byte `index` that a prefix of `length` bits covers. */
function mask(length: number, index: number): number {
  const bits = Math.min(8, Math.max(0, length - index * 8));
  return (0xff << (8 - bits)) & 0xff;
}

function group(address: IpAddress, index: number): string {
  return ((address[index * 2]! << 8) | address[index * 2 + 1]!).toString(16);
}

// Leading zeros are refused: some read them as octal (RFC 6943 §3.1.1).
const BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const IPV4 = new RegExp(`^${Array(4).fill(BYTE).join("\\.")}$`);
const IPV4_TEXT = new RegExp(IPV4.source.replaceAll("(", "(?:"));

function parseIpv4(text: string): IpAddress | undefined {
  const match = IPV4.exec(text);
  if (match === null) return undefined;
  return Uint8Array.of(+match[1]!, +match[2]!, +match[3]!, +match[4]!);
}

function parseIpv6(text: string): IpAddress | undefined {
  if (!/^[0-9a-fA-F:.]+$/.test(text) || !URL.canParse(`http://[${text}]/`)) {
    return undefined;
  }
  const canonical = new URL(`http://[${text}]/`).hostname.slice(1, -1);
  const [head = "", tail] = canonical.split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array<string>(8 - front.length - back.length).fill("0");
  const address = new Uint8Array(16);
  for (const [index, hex] of [...front, ...zeros, ...back].entries()) {
    const value = parseInt(hex, 16);
    address[index * 2] = value >> 8;
    address[index * 2 + 1] = value & 0xff;
  }
  return isIpv4Mapped(address) ? address.slice(12) : address;
}

/** `::ffff:0:0/96` (RFC 4291 §2.5.5.2). */
function isIpv4Mapped(address: IpAddress): boolean {
  return address.subarray(0, 10).every((byte) => byte === 0) &&
    address[10] === 0xff && address[11] === 0xff;
}
