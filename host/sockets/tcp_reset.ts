/**
 * Makes the end of a TCP socket a reset (RST) instead of an end (FIN).
 *
 * A tunnel that turns a reset into an orderly end lies: the peer takes half an
 * answer for a whole one. The platform has no call for it, so the C library's
 * `connect` is asked to dissolve the connection (address family AF_UNSPEC),
 * upon which Linux sends RST; the descriptor is looked up by the connection's
 * two addresses. `SO_LINGER` with a time of 0 would not do: the platform calls
 * `shutdown` before `close`, so FIN would leave first.
 *
 * Where that is not possible (no Linux, no permission for FFI) the socket is
 * closed plainly, which is an RST only when octets of the peer were unread.
 *
 * @module
 */

import { parseIpAddress } from "../../proto/link/ip_address.ts";

const AF_INET = 2;
const AF_INET6 = 10;
/** `struct sockaddr_storage`: any address fits. */
const SOCKADDR_OCTETS = 128;

/**
 * So many descriptors in a row that are no TCP socket end a scan. The kernel
 * gives out the lowest that is free, so they lie close together; one more try
 * costs a fraction of a microsecond.
 */
const GAP_MAX = 1024;

/** `struct sockaddr` of family AF_UNSPEC (0). */
const UNSPECIFIED = new Uint8Array(16);

const SYMBOLS = {
  getsockname: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  getpeername: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  connect: { parameters: ["i32", "buffer", "u32"], result: "i32" },
} as const;

type LibC = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

let libc: LibC | undefined | "unavailable";

/** Where each connection was seen last, so that many resets need one scan. */
let descriptors = new Map<string, number>();

/**
 * Sends RST on `conn`, which must then be closed.
 *
 * @returns Whether that worked.
 */
export function sendReset(conn: Deno.Conn): boolean {
  const library = openLibrary();
  if (library === undefined) return false;
  const wanted = `${keyOf(conn.localAddr)} ${keyOf(conn.remoteAddr)}`;
  let descriptor = descriptors.get(wanted);
  // Descriptors are reused, so what was remembered is checked before use.
  if (descriptor === undefined || endsOf(library, descriptor) !== wanted) {
    descriptors = scan(library);
    descriptor = descriptors.get(wanted);
  }
  if (descriptor === undefined) return false;
  descriptors.delete(wanted);
  return library.connect(descriptor, UNSPECIFIED, UNSPECIFIED.length) === 0;
}

function openLibrary(): LibC | undefined {
  libc ??= load() ?? "unavailable";
  return libc === "unavailable" ? undefined : libc;
}

function load(): LibC | undefined {
  if (Deno.build.os !== "linux") return undefined;
  // Asked first, because an attempt without the permission would prompt.
  if (Deno.permissions.querySync({ name: "ffi" }).state !== "granted") {
    return undefined;
  }
  try {
    return Deno.dlopen("libc.so.6", SYMBOLS).symbols;
  } catch {
    return undefined; // Another C library: resets become plain closes.
  }
}

/**
 * All connected TCP sockets of this process, by their two ends. Descriptors are
 * tried one by one: `/proc` would list them, but Deno opens it to nobody with
 * less than all permissions.
 */
function scan(library: LibC): Map<string, number> {
  const found = new Map<string, number>();
  let last = 0;
  for (let descriptor = 0; descriptor - last < GAP_MAX; descriptor++) {
    const ends = endsOf(library, descriptor);
    if (ends === undefined) continue;
    found.set(ends, descriptor);
    last = descriptor;
  }
  return found;
}

const name = new Uint8Array(SOCKADDR_OCTETS);
const nameLength = new Uint32Array(1);
const nameLengthOctets = new Uint8Array(nameLength.buffer);

function endsOf(library: LibC, descriptor: number): string | undefined {
  nameLength[0] = SOCKADDR_OCTETS;
  if (library.getsockname(descriptor, name, nameLengthOctets) !== 0) {
    return undefined;
  }
  const local = readName();
  nameLength[0] = SOCKADDR_OCTETS;
  if (
    local === undefined ||
    library.getpeername(descriptor, name, nameLengthOctets) !== 0
  ) return undefined;
  return `${local} ${readName()}`;
}

/** Reads a `sockaddr`: family in host order, port and address as sent. */
function readName(): string | undefined {
  const family = name[0]! | (name[1]! << 8);
  const port = (name[2]! << 8) | name[3]!;
  if (family === AF_INET) return `${name.subarray(4, 8)} ${port}`;
  if (family !== AF_INET6) return undefined;
  const address = name.subarray(8, 24);
  // ::ffff:a.b.c.d on a dual-stack socket is told by its IPv4 address.
  const isMapped = address.subarray(0, 10).every((octet) => octet === 0) &&
    address[10] === 0xff && address[11] === 0xff;
  return `${isMapped ? address.subarray(12) : address} ${port}`;
}

function keyOf(address: Deno.Addr): string {
  if (!("hostname" in address)) return "";
  return `${parseIpAddress(address.hostname)} ${address.port}`;
}
