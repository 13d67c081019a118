/**
 * Answers requests that are not gRPC: a browser, curl, a health check that got
 * the wrong port. Such a client reads HTTP, so it gets a status and a sentence.
 *
 * The request is read to its end first. Answering earlier and stopping the
 * client is allowed (RFC 9113 §8.1), but many clients then show a broken stream
 * and not the answer. The body is dropped as it is read, so this costs no
 * memory; its time and length are limited all the same.
 *
 * @module
 */

import { ErrorCode } from "../frames/wire_error.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import type { Stream, StreamEvents } from "../streams/stream.ts";
import type { Timer, Timers } from "../sync/clock.ts";
import { fieldValue } from "./status_codec.ts";

/** Bytes of a body that are read before the answer is sent early. */
export const FOREIGN_BODY_BYTES_MAX = 1024 * 1024;

/** How long the end of a request is waited for, and then that of the answer. */
export const FOREIGN_REQUEST_WAIT_MS = 10_000;

const ENCODER = new TextEncoder();

/** Answers one request that is not gRPC with 405 or 415. */
export class ForeignRequest implements StreamEvents {
  readonly #head: HeaderField[];
  readonly #timer: Timer;
  /** The rest of the answer's body. */
  #body: Uint8Array;
  #readBytes = 0;
  #state: "reading" | "answering" | "over" = "reading";
  #hasEnded = false;

  constructor(
    private readonly stream: Stream,
    fields: readonly HeaderField[],
    timers: Timers,
  ) {
    const method = fieldValue(fields, ":method") ?? "";
    const seen = fieldValue(fields, "content-type") ?? "none";
    const body = ENCODER.encode(
      "This port serves gRPC (application/grpc, by POST). Cannot serve " +
        `method ${method} with content-type ${seen}.\n`,
    );
    const status = method === "POST" ? "415" : "405";
    this.#head = [{ name: ":status", value: status }];
    if (status === "405") this.#head.push({ name: "allow", value: "POST" });
    this.#head.push(
      { name: "content-type", value: "text/plain; charset=utf-8" },
      { name: "content-length", value: String(body.length) },
    );
    // The answer to HEAD has no body (RFC 9110 §9.3.2).
    this.#body = method === "HEAD" ? new Uint8Array(0) : body;
    this.#timer = timers.after(FOREIGN_REQUEST_WAIT_MS, () => this.#giveUp());
  }

  onData(chunk: Uint8Array): void {
    if (this.#state === "over") return;
    this.stream.consumed(chunk.length);
    this.#readBytes += chunk.length;
    if (this.#state !== "reading") return;
    if (this.#readBytes > FOREIGN_BODY_BYTES_MAX) this.#answer();
  }

  onEnd(): void {
    this.#hasEnded = true;
    if (this.#state === "reading") this.#answer();
  }

  onWritable(): void {
    if (this.#state === "answering") this.#send();
  }

  onReset(): void {
    this.#over();
  }

  onHeaders(): void {}
  onTrailers(): void {}

  #answer(): void {
    this.#state = "answering";
    const isAll = this.#body.length === 0;
    this.stream.sendHeaders(this.#head, isAll);
    if (isAll) this.#finish();
    else this.#send();
  }

  #send(): void {
    this.#body = this.#body.subarray(this.stream.write(this.#body));
    if (this.#body.length > 0) return;
    this.stream.end();
    this.#finish();
  }

  /**
   * The answer is complete; a peer that still sends is made to stop (RFC 9113
   * §8.1).
   */
  #finish(): void {
    this.#over();
    if (!this.#hasEnded) this.stream.reset(ErrorCode.NO_ERROR);
  }

  #giveUp(): void {
    this.#over();
    this.stream.reset(ErrorCode.CANCEL);
  }

  #over(): void {
    this.#state = "over";
    this.#timer.cancel();
  }
}
