/**
 * The head of an HTTP/1.1 CONNECT request, read from bytes that may be cut
 * anywhere.
 *
 * It knows request lines and header lines (RFC 9112 §3, §5) and what a CONNECT
 * target may be (RFC 9110 §9.3.6). It knows nothing about sockets, agents or
 * what becomes of the target.
 *
 * @module
 */

import { HeadBuffer } from "../../proto/bytes/head_buffer.ts";
import { NODE_FIELD, TWO_NODES } from "../../proto/link/dial_handler.ts";

/**
 * Most bytes of a request head. kube-apiserver sends under 100; 32 KiB leaves
 * room for a proxy's cookies and bounds what a stranger can make us keep.
 */
export const CONNECT_HEAD_BYTES_MAX = 32_768;

/** A request head that can be served. */
export interface ConnectRequest {
  readonly kind: "connect";
  /** `host:port`, IPv6 in brackets, exactly one port in 1–65535. */
  readonly target: string;
  readonly headers: HeaderLines;
  /** What came behind the blank line: the first bytes for the target. */
  readonly early: Uint8Array;
}

/** A request head that is refused, and how to say so. */
export interface ConnectRefusal {
  readonly kind: "refusal";
  readonly status: number;
  readonly statusText: string;
  /** One sentence: what was seen, what was wanted. */
  readonly message: string;
}

/** Header lines, read when somebody asks: nearly nobody does. */
export class HeaderLines {
  /** @param lines Each begins with a name and a colon. */
  constructor(readonly lines: readonly string[]) {}

  /** @returns The first value of `name` (lower case), blanks cut off. */
  get(name: string): string | undefined {
    for (const line of this.lines) {
      if (line.charCodeAt(name.length) !== COLON) continue;
      if (line.slice(0, name.length).toLowerCase() !== name) continue;
      return line.slice(name.length + 1).replace(BLANKS_AROUND, "");
    }
    return undefined;
  }
}

const COLON = 0x3a;
const BLANKS_AROUND = /^[ \t]+|[ \t]+$/g;

/** Gathers a request head. See the module description. */
export class ConnectHead {
  readonly #bytesMax: number;
  readonly #buffer: HeadBuffer;

  constructor(options: { readonly headerBytesMax?: number } = {}) {
    this.#bytesMax = options.headerBytesMax ?? CONNECT_HEAD_BYTES_MAX;
    this.#buffer = new HeadBuffer(this.#bytesMax);
  }

  /**
   * Takes the next chunk (copied).
   *
   * @returns `undefined` while the head is not complete. After a result the
   *   object is spent.
   */
  push(chunk: Uint8Array): ConnectRequest | ConnectRefusal | undefined {
    const head = this.#buffer.push(chunk);
    switch (head.kind) {
      case "incomplete":
        return undefined;
      case "tooLarge":
        return refusal(
          431,
          "Request Header Fields Too Large",
          `Cannot read a request head of more than ${this.#bytesMax} bytes`,
        );
      case "complete":
        return parseHead(head.lines, head.rest);
    }
  }
}

function parseHead(
  head: readonly string[],
  early: Uint8Array,
): ConnectRequest | ConnectRefusal {
  const [requestLine = "", ...lines] = head;
  const parts = requestLine.split(" ");
  const [method = "", target = "", version = ""] = parts;
  if (parts.length !== 3 || !/^HTTP\/1\.[01]$/.test(version)) {
    return refusal(
      400,
      "Bad Request",
      `Cannot read the request line ${quote(requestLine)}, ` +
        `wanted "CONNECT host:port HTTP/1.1"`,
    );
  }
  if (method !== "CONNECT") {
    return refusal(
      405,
      "Method Not Allowed",
      `this proxy only supports CONNECT passthrough, not ${quote(method)}`,
    );
  }
  let isNodeNamed = false;
  for (const line of lines) {
    // Folded lines and blanks before the colon are refused: they are how
    // requests are smuggled past another parser (RFC 9112 §5.1, §5.2).
    if (!HEADER_LINE.test(line)) {
      return refusal(
        400,
        "Bad Request",
        `Cannot read the header line ${quote(line)}, wanted "name: value"`,
      );
    }
    const namesNode = NODE_LINE.test(line);
    if (namesNode && isNodeNamed) return refusal(400, "Bad Request", TWO_NODES);
    isNodeNamed ||= namesNode;
  }
  const problem = targetProblem(target);
  if (problem !== undefined) {
    return refusal(
      400,
      "Bad Request",
      `Cannot connect to ${quote(target)}: ${problem}`,
    );
  }
  return { kind: "connect", target, headers: new HeaderLines(lines), early };
}

/** No control characters but tabs: others end values at a NUL (RFC 9110 §5.5). */
const HEADER_LINE =
  // deno-lint-ignore no-control-regex -- those are what is refused
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*$/;

const NODE_LINE = new RegExp(`^${NODE_FIELD}:`, "i");

/** Why `target` is not a `host:port`, or `undefined` when it is. */
function targetProblem(target: string): string | undefined {
  return PLAIN_TARGET.test(target) ? undefined : problemOf(target);
}

/** What nearly all are: nothing to say about it. Ports up to 59999. */
const PLAIN_TARGET = /^[0-9A-Za-z._-]+:[1-9](?:[0-9]{0,3}|(?<=[1-5])[0-9]{4})$/;

function problemOf(target: string): string | undefined {
  if (target.includes("@")) return "user information is not allowed here";
  if (/[/?#\\]/.test(target)) return 'a path was seen, wanted "host:port"';
  const bracketed = /^\[([0-9a-fA-F:.]+(?:%[0-9A-Za-z._~-]+)?)\](.*)$/.exec(
    target,
  );
  const rest = bracketed ? bracketed[2]! : target;
  if (bracketed === null && target.startsWith("[")) {
    return "what stands in brackets is not an IPv6 address";
  }
  if (bracketed !== null && !bracketed[1]!.includes(":")) {
    return "what stands in brackets is not an IPv6 address";
  }
  if (bracketed === null && target.indexOf(":") !== target.lastIndexOf(":")) {
    return 'an IPv6 address needs brackets, as in "[2001:db8::1]:443"';
  }
  const colon = rest.lastIndexOf(":");
  if (colon === -1) return 'there is no port, wanted "host:port"';
  if (bracketed === null && !/^[0-9A-Za-z._-]+$/.test(rest.slice(0, colon))) {
    return "the host is empty or not a host name";
  }
  const port = rest.slice(colon + 1);
  if (!/^[0-9]{1,5}$/.test(port) || +port < 1 || +port > 65_535) {
    return `the port is ${quote(port)}, wanted 1 to 65535`;
  }
  return undefined;
}

function refusal(
  status: number,
  statusText: string,
  message: string,
): ConnectRefusal {
  return { kind: "refusal", status, statusText, message };
}

/** The text in quotes, harmless for terminals and logs, and not too long. */
function quote(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  return JSON.stringify(short);
}
