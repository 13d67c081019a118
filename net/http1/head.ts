/**
 * The heads of HTTP/1.1 messages, read strictly out of bytes that may be cut
 * anywhere (RFC 9112 §2–§5), with one set of limits.
 *
 * It knows request lines, status lines and field lines. The caller decides what
 * a head means; where the body behind it ends is in `framing.ts`.
 *
 * @module
 */

import type { Socket } from "../stream/socket.ts";
import { Fields } from "./fields.ts";
import { HeadGatherer } from "./head_gatherer.ts";
import { MessageError, quote } from "./refusal.ts";

/**
 * Most bytes of a request's head. kube-apiserver sends under 2 KiB, a browser
 * its cookies; more is what an unauthenticated peer makes us keep.
 */
export const REQUEST_HEAD_BYTES_MAX = 32_768;

/** Most bytes of an answer's head. */
export const RESPONSE_HEAD_BYTES_MAX = 65_536;

/** Limit on 1xx answers before the final one. */
export const INTERIM_MAX = 8;

/** The head of a request. */
export interface RequestHead {
  readonly method: string;
  /** Visible ASCII. */
  readonly target: string;
  readonly version: "1.0" | "1.1";
  readonly fields: Fields;
}

/** The head of an answer. */
export interface ResponseHead {
  readonly status: number;
  /** The reason phrase; no control characters but tabs. */
  readonly phrase: string;
  readonly fields: Fields;
}

/** A head, and the bytes after it. */
export interface WithRest<Head> {
  readonly head: Head;
  /** The bytes after the blank line; a copy. */
  readonly rest: Uint8Array;
}

/** Reads the head of one request. */
export class RequestReader {
  readonly #gatherer: HeadGatherer;

  /**
   * @param example Of a request that is wanted, for the error.
   * @param bytesMax For tests.
   */
  constructor(
    private readonly example: string,
    private readonly bytesMax: number = REQUEST_HEAD_BYTES_MAX,
  ) {
    this.#gatherer = new HeadGatherer(bytesMax);
  }

  /**
   * Takes the next chunk (copied).
   *
   * @returns `undefined` while the head is not complete. Spent after a result.
   * @throws {MessageError} With the status to answer. Spent after it.
   */
  push(chunk: Uint8Array): WithRest<RequestHead> | undefined {
    const gathered = this.#gatherer.push(chunk);
    if (typeof gathered === "string") {
      // TLS, say, whose client would wait for an answer with us.
      const { start } = this.#gatherer;
      if (start !== "" && !TOKEN.test(start[0]!)) {
        throw noRequest(firstLine(start), this.example);
      }
      if (gathered === "incomplete") return undefined;
      throw new MessageError(
        431,
        `Cannot read a request head of more than ${this.bytesMax} bytes`,
      );
    }
    const { lines, rest } = gathered;
    return { head: requestHead(lines, this.example), rest };
  }
}

/** Reads the heads of one answer: interim ones first, if there are any. */
export class ResponseReader {
  #gatherer = new HeadGatherer(RESPONSE_HEAD_BYTES_MAX);
  #interimCount = 0;

  /** @param who Names the answering end in errors: "the kubelet". */
  constructor(private readonly who: string) {}

  /**
   * Takes the next chunk (copied).
   *
   * @returns `undefined` while the head is not complete. An interim head is
   *   followed by the next one: push its `rest`. After any other head this
   *   object is used up.
   * @throws {MessageError} With status 502. The object is used up then.
   */
  push(chunk: Uint8Array): WithRest<ResponseHead> | undefined {
    const gathered = this.#gatherer.push(chunk);
    if (typeof gathered === "string") {
      // A peer of another protocol may never send more.
      const { start } = this.#gatherer;
      if (!VERSION.startsWith(start.slice(0, VERSION.length))) {
        throw this.#noAnswer(firstLine(start));
      }
      if (gathered === "incomplete") return undefined;
      throw this.#broken(
        `answered with a head of more than ${RESPONSE_HEAD_BYTES_MAX} bytes`,
      );
    }
    const head = this.#parse(gathered.lines);
    if (isInterim(head)) {
      if (++this.#interimCount > INTERIM_MAX) {
        throw this.#broken(`gave more than ${INTERIM_MAX} interim answers`);
      }
      this.#gatherer = new HeadGatherer(RESPONSE_HEAD_BYTES_MAX);
    }
    return { head, rest: gathered.rest };
  }

  /**
   * Like {@linkcode push}, for callers that ignore interim answers and did not
   * ask for another protocol.
   */
  pushFinal(chunk: Uint8Array): WithRest<ResponseHead> | undefined {
    let read = this.push(chunk);
    while (read !== undefined && isInterim(read.head)) {
      read = this.push(read.rest);
    }
    if (read?.head.status === 101) {
      throw this.#broken("changed the protocol, which was not requested");
    }
    return read;
  }

  #parse([statusLine = "", ...lines]: readonly string[]): ResponseHead {
    const match = STATUS_LINE.exec(statusLine);
    if (match === null) throw this.#noAnswer(statusLine);
    return {
      status: Number(match[1]),
      phrase: match[2] ?? "",
      fields: new Fields(lines, 502),
    };
  }

  #noAnswer(seen: string): MessageError {
    return this.#broken(`answered ${quote(seen)}, which is no HTTP/1.1`);
  }

  #broken(what: string): MessageError {
    return new MessageError(502, `${this.who} ${what}`);
  }
}

/** One of the two above. */
export interface HeadReader<Head> {
  push(chunk: Uint8Array): WithRest<Head> | undefined;
}

/**
 * Reads a head, and leaves what follows it in `from`.
 *
 * @returns `undefined` when the peer ended its side before.
 */
export async function readHead<Head>(
  from: Socket,
  reader: HeadReader<Head>,
): Promise<Head | undefined> {
  while (await from.fill()) {
    const { bytes } = from;
    const read = reader.push(bytes);
    from.drop(bytes.length - (read?.rest.length ?? 0));
    if (read !== undefined) return read.head;
  }
  return undefined;
}

/** {@linkcode readHead} of an answer, with {@linkcode ResponseReader.pushFinal}. */
export function readAnswerHead(
  from: Socket,
  who: string,
): Promise<ResponseHead | undefined> {
  const reader = new ResponseReader(who);
  return readHead(from, { push: (chunk) => reader.pushFinal(chunk) });
}

/** Whether more is to come: 100 Continue and its like (RFC 9110 §15.2). */
export function isInterim({ status }: ResponseHead): boolean {
  return status < 200 && status !== 101;
}

/** What every answer begins with. */
const VERSION = "HTTP/";

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** RFC 9112 §3; the server of a method checks it. */
const REQUEST_LINE =
  /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP\/1\.([01])$/;

/** RFC 9112 §4; some servers leave out the blank of an empty phrase. */
const STATUS_LINE =
  /^HTTP\/1\.[01] ([1-5][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?$/;

function requestHead(
  [requestLine = "", ...lines]: readonly string[],
  example: string,
): RequestHead {
  const match = REQUEST_LINE.exec(requestLine);
  if (match === null) throw noRequest(requestLine, example);
  return {
    method: match[1]!,
    target: match[2]!,
    version: match[3] === "0" ? "1.0" : "1.1",
    fields: new Fields(lines, 400),
  };
}

function noRequest(seen: string, example: string): MessageError {
  return new MessageError(
    400,
    `Cannot read the request line ${quote(seen)}, ` +
      `wanted "${example} HTTP/1.1"`,
  );
}

/** A message's head as bytes, exactly as it was read. */
export function headBytes(lines: readonly string[]): Uint8Array {
  const text = `${lines.join("\r\n")}\r\n\r\n`;
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function firstLine(text: string): string {
  return text.split(/\r?\n/, 1)[0]!;
}
