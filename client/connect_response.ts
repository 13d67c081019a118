/**
 * What a frontend answers to CONNECT, out of bytes that may be cut anywhere.
 *
 * It knows status lines and how long a body is (RFC 9112 §4, §6). It knows no
 * sockets and nothing of what becomes of the answer.
 *
 * @module
 */

import { type GatheredHead, HeadBuffer } from "../proto/bytes/head_buffer.ts";

/** Most bytes of a response head; what a server of ours ever says is short. */
export const RESPONSE_HEAD_BYTES_MAX = 65_536;

/** Most bytes of a refusal's body that are shown. */
export const REFUSAL_BODY_BYTES_MAX = 4_096;

/** The answer, once it is known. */
export type ConnectAnswer =
  /** The tunnel is open; `early` came behind the head. */
  | { readonly kind: "granted"; readonly early: Uint8Array }
  | {
    readonly kind: "refused";
    readonly status: number;
    /** The body, or the reason phrase where there is none; one line. */
    readonly sentence: string;
  }
  /** Not an answer to CONNECT; `problem` says what it is instead. */
  | { readonly kind: "broken"; readonly problem: string };

/** A refusal whose body is being gathered. */
interface Refusal {
  readonly status: number;
  readonly phrase: string;
  /** How much of the body is wanted. */
  readonly wantedBytes: number;
  body: Uint8Array;
}

/** See the module description. */
export class ConnectResponse {
  #head = new HeadBuffer(RESPONSE_HEAD_BYTES_MAX);
  #refusal: Refusal | undefined;

  /**
   * Takes the next chunk (copied).
   *
   * @returns The answer as soon as there is one; nothing may follow it.
   */
  push(chunk: Uint8Array): ConnectAnswer | undefined {
    if (this.#refusal !== undefined) return this.#pushBody(chunk);
    let gathered = this.#head.push(chunk);
    for (;;) {
      if (gathered.kind === "incomplete") return undefined;
      if (gathered.kind === "tooLarge") {
        return {
          kind: "broken",
          problem: `a head of more than ${RESPONSE_HEAD_BYTES_MAX} bytes`,
        };
      }
      const [statusLine = ""] = gathered.lines;
      const match = /^HTTP\/1\.[01] ([1-5][0-9]{2})(?: (.*))?$/.exec(
        statusLine,
      );
      if (match === null) {
        const shown = JSON.stringify(statusLine.slice(0, 80));
        return { kind: "broken", problem: `${shown}, which is no HTTP/1.1` };
      }
      const status = Number(match[1]);
      if (status >= 200) return this.#onFinal(status, match[2] ?? "", gathered);
      // An interim answer says nothing yet (RFC 9110 §15.2).
      this.#head = new HeadBuffer(RESPONSE_HEAD_BYTES_MAX);
      gathered = this.#head.push(gathered.rest);
    }
  }

  /** No more bytes come. @returns What there was, if that is an answer. */
  end(): ConnectAnswer | undefined {
    return this.#refusal === undefined ? undefined : this.#refused();
  }

  #onFinal(
    status: number,
    phrase: string,
    { lines, rest }: Extract<GatheredHead, { kind: "complete" }>,
  ): ConnectAnswer | undefined {
    // Any 2xx opens the tunnel, and none has a body (RFC 9110 §9.3.6).
    if (status < 300) return { kind: "granted", early: rest };
    this.#refusal = {
      status,
      phrase,
      wantedBytes: bodyBytes(lines),
      body: new Uint8Array(0),
    };
    return this.#pushBody(rest);
  }

  #pushBody(bytes: Uint8Array): ConnectAnswer | undefined {
    const refusal = this.#refusal!;
    const taken = bytes.subarray(
      0,
      refusal.wantedBytes - refusal.body.length,
    );
    const body = new Uint8Array(refusal.body.length + taken.length);
    body.set(refusal.body);
    body.set(taken, refusal.body.length);
    refusal.body = body;
    return body.length < refusal.wantedBytes ? undefined : this.#refused();
  }

  #refused(): ConnectAnswer {
    const { status, phrase, body } = this.#refusal!;
    const sentence = oneLine(new TextDecoder().decode(body)) ||
      oneLine(phrase) || "no reason was given";
    return { kind: "refused", status, sentence };
  }
}

/** How much of a refusal's body to wait for; without a length, to its end. */
function bodyBytes(lines: readonly string[]): number {
  const text = lines.slice(1).join("\n");
  // In chunks, which nobody who serves CONNECT does: the phrase has to do.
  if (/^transfer-encoding:/im.test(text)) return 0;
  const length = /^content-length:[ \t]*([0-9]{1,15})[ \t]*$/im.exec(text)?.[1];
  return Math.min(Number(length ?? Infinity), REFUSAL_BODY_BYTES_MAX);
}

/** What strangers wrote must not move the cursor of whoever reads it. */
function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, " ").trim();
}
