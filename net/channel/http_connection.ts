/**
 * One connection of an HTTP/1.1 client: one request after another, each with
 * its answer (RFC 9112 §9).
 *
 * It knows neither where the connection leads nor other connections.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import {
  answerLength,
  BodyFraming,
  type BodyLength,
  NO_BODY,
} from "../http1/framing.ts";
import { readAnswerHead, type ResponseHead } from "../http1/head.ts";
import { Socket } from "../stream/socket.ts";
import type { Stream } from "../stream/stream.ts";

/** An answer whose body is still on its way. */
export interface HttpAnswer {
  readonly head: ResponseHead;
  /** `null`: there is no body. Cancelling it ends the connection. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

/** A request, and what to do with its answer. */
export interface HttpExchange {
  readonly method: string;
  /** Head and body, as they leave. */
  readonly bytes: Uint8Array;
  /** Ends the connection, and the reading of the answer with it. */
  readonly signal: AbortSignal;
}

/** The server ended the connection before it answered anything. */
export class NoAnswerYetError extends Error {
  override readonly name = "NoAnswerYetError";
}

/** The error of a connection that ends instead. */
export const NO_ANSWER = "the server closed the connection without an answer";

export class HttpConnection {
  readonly #socket: Socket;
  #state: "idle" | "busy" | "closed" = "idle";

  /** @param idle Called when the next request may be made. */
  constructor(
    stream: Stream,
    private readonly idle: (connection: HttpConnection) => void,
  ) {
    this.#socket = new Socket(stream);
  }

  get isOpen(): boolean {
    return this.#state !== "closed";
  }

  /** Harmless a second time. */
  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#socket.close();
  }

  /**
   * Sends a request, while the connection is idle.
   *
   * @throws {NoAnswerYetError} The request may be sent again on another
   *   connection, if it is idempotent.
   * @throws {MessageError} The answer is no HTTP/1.1.
   * @throws Why the connection failed; what ended it, where that was `signal`.
   */
  async ask(exchange: HttpExchange): Promise<HttpAnswer> {
    const { method, bytes, signal } = exchange;
    this.#state = "busy";
    const onAbort = () => this.close();
    signal.addEventListener("abort", onAbort);
    const done = (isReusable: boolean) => {
      signal.removeEventListener("abort", onAbort);
      if (isReusable && this.#state === "busy") this.#rest();
      else this.close();
    };
    try {
      signal.throwIfAborted();
      await this.#write(bytes);
      const head = await this.#head();
      const framing = new BodyFraming(lengthOf(method, head));
      const isKept = !head.fields.list("connection").includes("close");
      if (framing.isDone) {
        done(isKept && this.#socket.bytes.length === 0);
        return { head, body: null };
      }
      return { head, body: this.#body(framing, signal, isKept, done) };
    } catch (error) {
      done(false);
      signal.throwIfAborted();
      throw error;
    }
  }

  /** Waits for the next request, and for the server's end of it all. */
  #rest(): void {
    this.#state = "idle";
    const watching = this.#socket.fill().then(() => {
      // Bytes without a request: the server can only mean an end.
      if (this.#state === "idle") this.close();
    }, () => this.close());
    unawaited("http", watching, () => this.close());
    this.idle(this);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      await this.#socket.writeAll(bytes);
    } catch (error) {
      // An answer to the part that left may be there; else this is why.
      this.#writeError = error;
    }
  }

  #writeError: unknown;

  async #head(): Promise<ResponseHead> {
    const hasBegun = await this.#socket.fill().catch((error) => {
      throw new NoAnswerYetError(messageOf(error), { cause: error });
    });
    const cause = this.#writeError;
    if (!hasBegun) throw new NoAnswerYetError(NO_ANSWER, { cause });
    const head = await readAnswerHead(this.#socket, "the server");
    if (head === undefined) throw new Error(NO_ANSWER, { cause });
    return head;
  }

  #body(
    framing: BodyFraming,
    signal: AbortSignal,
    isKept: boolean,
    done: (isReusable: boolean) => void,
  ): ReadableStream<Uint8Array<ArrayBuffer>> {
    const socket = this.#socket;
    return new ReadableStream({
      pull: async (controller) => {
        try {
          for (let isFed = false; !isFed && !framing.isDone;) {
            if (!await socket.fill()) {
              if (!framing.mayEnd) throw cutOff();
              controller.close();
              return done(false);
            }
            const { bytes } = socket;
            const taken = framing.take(bytes, (from, to) => {
              controller.enqueue(bytes.slice(from, to));
              isFed = true;
            });
            socket.drop(taken);
          }
          if (!framing.isDone) return;
          controller.close();
          done(isKept && socket.bytes.length === 0);
        } catch (error) {
          done(false);
          controller.error(signal.aborted ? signal.reason : error);
        }
      },
      cancel: () => done(false),
    });
  }
}

/** Reset Content has none either in the platform's `Response`. */
function lengthOf(method: string, head: ResponseHead): BodyLength {
  return head.status === 205 ? NO_BODY : answerLength(method, head);
}

function cutOff(): Error {
  return new Error("the server closed the connection within its answer");
}
