/**
 * One caller's connection: one request to a kubelet and its answer, or one
 * change of protocol and what is said after it.
 *
 * Some answers never end or never begin (`logs -f` of a quiet pod does not even
 * send a head). Only the caller's leaving ends such a request, so its socket is
 * read all the time. As in Go's HTTP server, a half-close counts as leaving,
 * except after a change of protocol, where it is passed on.
 *
 * Reading order: `run`, `#serve`, `#followCaller`, `#receive`.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { atMost, within } from "../../platform/time/deadline.ts";
import { conduitOf } from "../../net/stream/stream_conduit.ts";
import { Socket } from "../../net/stream/socket.ts";
import type { Stream } from "../../net/stream/stream.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { transfer } from "../../proto/transfer/transfer.ts";
import { BodyFraming, type BodyLength } from "../../net/http1/framing.ts";
import {
  type HeadReader,
  readHead,
  RequestReader,
  ResponseReader,
} from "../../net/http1/head.ts";
import { MessageError, refusalBytes } from "../../net/http1/refusal.ts";
import type { Caller } from "../policy/caller.ts";
import {
  CallerLeft,
  isDialFailure,
  type KubeletRefusal,
  refusalOf,
} from "./exchange_errors.ts";
import {
  type KubeletRoute,
  kubeletRouteOf,
  type RoutingOptions,
} from "./kubelet_route.ts";
import {
  forwardedHead,
  kubeletAnswerOf,
  type KubeletRequest,
  kubeletRequestOf,
} from "./kubelet_request.ts";

/** How long a caller may take for its request head, however it dribbles. */
export const REQUEST_HEAD_TIMEOUT_MS = 10_000;

/** How long a caller may let its body wait. */
export const BODY_IDLE_TIMEOUT_MS = 60_000;

/** How long a kubelet may take to change the protocol. */
export const SWITCH_TIMEOUT_MS = 60_000;

/** How long both ends may take to hang up when all is said. */
export const HANG_UP_MS = 2_000;

/** Most bytes behind a request that are dropped; more ends the connection. */
export const EXCESS_BYTES_MAX = 65_536;

/** What an exchange needs from outside. */
export interface ExchangeOptions {
  readonly timers: Timers;
  readonly routing: RoutingOptions;
  /** Gives an encrypted connection to the kubelet; `signal` gives it up. */
  connect(
    route: KubeletRoute,
    caller: Caller,
    signal: AbortSignal,
  ): Promise<Stream>;
  readonly observer: ExchangeObserver;
}

/** Hears of every request whose head could be read. */
export interface ExchangeObserver {
  began(request: KubeletRequest): void;
  /** Paired with `began`. @param status 0 when the caller left without one. */
  ended(request: KubeletRequest, status: number, tookMs: number): void;
  /** Our refusal of the request, whichever it was. */
  refused(caller: Caller, refusal: KubeletRefusal, isDial: boolean): void;
}

/** See the module description. */
export class KubeletExchange {
  readonly #caller: Socket;
  readonly #abort = new AbortController();
  /** Has started when the caller's side is read to its end. */
  #following: Promise<void> | undefined;
  #kubelet: Socket | undefined;
  /** The last status that left for the caller. */
  #status = 0;
  #phase: "asking" | "switched" | "over" = "asking";

  constructor(caller: Stream, private readonly options: ExchangeOptions) {
    this.#caller = new Socket(caller);
  }

  /** Serves the connection to its end. Never rejects for the world's reasons. */
  async run(): Promise<void> {
    let request: KubeletRequest | undefined;
    const { timers, observer } = this.options;
    const startedMs = timers.now();
    try {
      const head = await this.#within(
        REQUEST_HEAD_TIMEOUT_MS,
        this.#readHead(this.#caller, new RequestReader("GET /path")),
        () => new MessageError(408, "Cannot wait longer for a request head"),
      );
      request = kubeletRequestOf(head);
      observer.began(request);
      await this.#serve(request);
    } catch (error) {
      await this.#fail(
        this.#abort.signal.aborted ? this.#abort.signal.reason : error,
      );
    } finally {
      if (request !== undefined) {
        const tookMs = timers.now() - startedMs;
        observer.ended(request, this.#status, tookMs);
      }
    }
  }

  /** Ends it at once, in any state. */
  stop(reason: string): void {
    this.#giveUp(new CallerLeft(reason));
    // After a change of protocol only these two wait.
    this.#kubelet?.reset();
    this.#caller.reset();
  }

  async #serve(request: KubeletRequest): Promise<void> {
    const { signal } = this.#abort;
    const connected = Promise.withResolvers<Socket>();
    // When it fails, its result may have no reader.
    connected.promise.catch(() => {});
    this.#following = this.#followCaller(request, connected.promise);
    let kubelet: Socket;
    try {
      const { routing } = this.options;
      const { stream } = this.#caller;
      const route = await kubeletRouteOf(request, stream, routing);
      signal.throwIfAborted();
      const socket = await this.options.connect(route, stream, signal);
      kubelet = this.#kubelet = new Socket(socket);
      await kubelet.writeAll(forwardedHead(request, route.address));
      connected.resolve(kubelet);
    } catch (error) {
      connected.reject(error);
      throw error;
    }
    signal.throwIfAborted();
    await this.#receive(kubelet, request);
  }

  // --- From the caller -------------------------------------------------------------

  /** Sends the body on, then waits for the caller to leave. */
  async #followCaller(
    { body, upgrade }: KubeletRequest,
    connected: Promise<Socket>,
  ): Promise<void> {
    try {
      const framing = new BodyFraming(body);
      if (!framing.isDone) await this.#sendBody(framing, connected);
      // Bytes after an upgrade are kept for later.
      else if (upgrade !== undefined && await this.#caller.fill()) return;
      let excess = 0;
      while (this.#phase !== "switched" && await this.#caller.fill()) {
        excess += this.#dropAll();
        if (this.#phase === "over" || excess <= EXCESS_BYTES_MAX) continue;
        const seen = `more than ${EXCESS_BYTES_MAX} bytes behind a request`;
        this.#giveUp(new MessageError(400, `Cannot go on: saw ${seen}`));
      }
      this.#giveUp(new CallerLeft("the caller has left"));
    } catch (error) {
      this.#giveUp(
        error instanceof MessageError
          ? error
          : new CallerLeft(`the caller has left: ${messageOf(error)}`),
      );
    }
  }

  async #sendBody(
    framing: BodyFraming,
    connected: Promise<Socket>,
  ): Promise<void> {
    const late = () =>
      new MessageError(408, "Cannot wait longer for the rest of a body");
    let kubelet: Socket | undefined;
    while (!framing.isDone) {
      const isFilled = this.#caller.fill();
      if (!await this.#within(BODY_IDLE_TIMEOUT_MS, isFilled, late)) return;
      try {
        kubelet ??= await connected;
      } catch {
        return; // There is nobody to send it to, which `#serve` tells.
      }
      const { bytes } = this.#caller;
      const count = framing.take(bytes);
      try {
        await kubelet.writeAll(bytes.subarray(0, count));
      } catch {
        return; // A kubelet may answer and hang up before it has read it all.
      }
      this.#caller.drop(count);
    }
  }

  #dropAll(): number {
    const { length } = this.#caller.bytes;
    this.#caller.drop(length);
    return length;
  }

  // --- From the kubelet ------------------------------------------------------------

  async #receive(
    kubelet: Socket,
    request: KubeletRequest,
  ): Promise<void> {
    const reader = new ResponseReader("the kubelet");
    for (;;) {
      const reading = this.#readHead(kubelet, reader);
      const head = request.upgrade === undefined
        ? await reading
        : await this.#within(SWITCH_TIMEOUT_MS, reading, () =>
          new MessageError(504, "the kubelet did not answer in time"));
      const answer = kubeletAnswerOf(head, request);
      if (answer.kind === "switched") {
        return await this.#switch(kubelet, answer);
      }
      if (answer.kind === "final") this.#status = answer.status;
      await this.#say(answer.bytes);
      if (answer.kind === "interim") continue;
      await this.#relayBody(kubelet, answer.body);
      return await this.#finish(kubelet);
    }
  }

  async #relayBody(kubelet: Socket, body: BodyLength): Promise<void> {
    const framing = new BodyFraming(body);
    while (!framing.isDone) {
      if (!await kubelet.fill()) {
        if (framing.mayEnd) return;
        throw new MessageError(502, "the kubelet's answer has no end");
      }
      const { bytes } = kubelet;
      const count = framing.take(bytes);
      await this.#say(bytes.subarray(0, count));
      kubelet.drop(count);
    }
  }

  async #switch(
    kubelet: Socket,
    { bytes }: { readonly bytes: Uint8Array },
  ): Promise<void> {
    this.#phase = "switched";
    this.#status = 101;
    await this.#say(bytes);
    await transfer(
      conduitOf(this.#caller.handOver()),
      conduitOf(kubelet.handOver()),
    );
  }

  // --- Both ------------------------------------------------------------------------

  /** @returns The next head; later bytes stay in `from`. */
  async #readHead<Head>(
    from: Socket,
    reader: HeadReader<Head>,
  ): Promise<Head> {
    const head = await readHead(from, reader);
    if (head !== undefined) return head;
    if (from === this.#caller) throw new CallerLeft("the caller has left");
    throw new MessageError(502, "the kubelet hung up without an answer");
  }

  async #say(bytes: Uint8Array): Promise<void> {
    try {
      await this.#caller.writeAll(bytes);
    } catch (error) {
      throw new CallerLeft(`the caller has left: ${messageOf(error)}`);
    }
  }

  /** All is said: both connections end in order. */
  async #finish(kubelet: Socket): Promise<void> {
    this.#phase = "over";
    await Promise.all([
      this.#hangUp(this.#caller, this.#following!),
      this.#hangUp(kubelet, drained(kubelet)),
    ]);
  }

  async #fail(error: unknown): Promise<void> {
    this.#phase = "over";
    this.#kubelet?.reset();
    const refusal = refusalOf(error);
    if (refusal === undefined || this.#status !== 0) {
      // A reset, so that half an answer is never taken for a whole one.
      return this.#caller.reset();
    }
    this.#status = refusal.status;
    const isDial = isDialFailure(error);
    this.options.observer.refused(this.#caller.stream, refusal, isDial);
    const { status, message } = refusal;
    try {
      await this.#say(refusalBytes(status, message));
    } catch {
      return this.#caller.reset(); // There is nobody left to tell.
    }
    await this.#hangUp(this.#caller, this.#following ?? drained(this.#caller));
  }

  /**
   * Ends our side and waits for the peer's end: closing at once could turn the
   * last bytes into a TCP reset.
   */
  async #hangUp(socket: Socket, ended: Promise<void>): Promise<void> {
    const ending = socket.closeWrite().then(() => ended).catch(() => {});
    await atMost(this.options.timers, HANG_UP_MS, ending);
    socket.close();
  }

  #giveUp(reason: Error): void {
    if (this.#phase !== "asking" || this.#abort.signal.aborted) return;
    this.#abort.abort(reason);
    // Ends every wait for them; `run` tells what for.
    this.#kubelet?.reset();
    if (reason instanceof CallerLeft) this.#caller.reset();
  }

  #within<T>(
    timeoutMs: number,
    action: Promise<T>,
    late: () => Error,
  ): Promise<T> {
    const { timers } = this.options;
    return within({ timers, timeoutMs, late }, action);
  }
}

/** Reads `socket` to its end and drops everything. */
async function drained(socket: Socket): Promise<void> {
  while (await socket.fill()) socket.drop(socket.bytes.length);
}
