/**
 * Reads the answer to CONNECT from bytes in arbitrary pieces: a tunnel, or a
 * refusal with its reason.
 *
 * It knows neither sockets nor the use of the answer.
 *
 * @module
 */

import { CODE_FIELD } from "../../proto/grpc/status_codec.ts";
import { codeNamed } from "../../proto/peer/dial_error.ts";
import type { Code } from "../../proto/codes/codes.ts";
import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { answerLength } from "./framing.ts";
import { type ResponseHead, ResponseReader } from "./head.ts";

/** Most bytes of a refusal's body that are shown. */
export const REFUSAL_BODY_BYTES_MAX = 4_096;

/** The answer, once it is known. */
export type ConnectAnswer =
  /** The tunnel is open; `early` came behind the head. */
  | { readonly kind: "granted"; readonly early: Uint8Array }
  | ConnectRefusal;

/** No tunnel. */
export interface ConnectRefusal {
  readonly kind: "refused";
  readonly status: number;
  /** The body, or the reason phrase without one; one line. */
  readonly sentence: string;
  /** A server of ours says it. */
  readonly code?: Code | undefined;
}

/** A refusal whose body is being gathered. */
interface Refusal {
  readonly status: number;
  readonly phrase: string;
  readonly code: Code | undefined;
  /** How much of the body is wanted. */
  readonly wantedBytes: number;
  body: Uint8Array;
}

export class ConnectAnswerReader {
  readonly #reader: ResponseReader;
  #refusal: Refusal | undefined;

  /** @param who Names the answering end in errors: "the server". */
  constructor(who: string) {
    this.#reader = new ResponseReader(who);
  }

  /**
   * Takes the next chunk (copied).
   *
   * @returns The answer as soon as there is one; nothing may follow it.
   * @throws {MessageError} When it is none. Nothing may follow it either.
   */
  push(chunk: Uint8Array): ConnectAnswer | undefined {
    if (this.#refusal !== undefined) return this.#pushBody(chunk);
    const read = this.#reader.pushFinal(chunk);
    if (read === undefined) return undefined;
    const { head, rest } = read;
    // Any 2xx opens the tunnel, and none has a body (RFC 9110 §9.3.6).
    if (head.status < 300) return { kind: "granted", early: rest };
    const { status, phrase } = head;
    const wantedBytes = bytesOfBody(head);
    const code = codeNamed(head.fields.all(CODE_FIELD)[0]);
    const body = new Uint8Array(0);
    this.#refusal = { status, phrase, code, wantedBytes, body };
    return this.#pushBody(rest);
  }

  /** No more bytes come. @returns What there was, if that is an answer. */
  end(): ConnectRefusal | undefined {
    return this.#refusal === undefined ? undefined : this.#refused();
  }

  #pushBody(bytes: Uint8Array): ConnectRefusal | undefined {
    const refusal = this.#refusal!;
    const taken = bytes.subarray(0, refusal.wantedBytes - refusal.body.length);
    const body = joinedBytes([refusal.body, taken]);
    refusal.body = body;
    return body.length < refusal.wantedBytes ? undefined : this.#refused();
  }

  #refused(): ConnectRefusal {
    const { status, phrase, code, body } = this.#refusal!;
    const sentence = oneLine(new TextDecoder().decode(body)) ||
      oneLine(phrase) || "no reason was given";
    return { kind: "refused", status, sentence, code };
  }
}

/** How much of a refusal's body to wait for; without a length, to its end. */
function bytesOfBody(head: ResponseHead): number {
  const length = answerLength("CONNECT", head);
  switch (length.kind) {
    case "bytes":
      return Math.min(length.bytes, REFUSAL_BODY_BYTES_MAX);
    case "untilClose":
      return REFUSAL_BODY_BYTES_MAX;
    // Which no server of CONNECT sends: the phrase has to do.
    case "chunked":
      return 0;
  }
}

/** A peer's text must not move the cursor of its reader's terminal. */
function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, " ").trim();
}
