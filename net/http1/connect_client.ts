/**
 * The caller's side of HTTP CONNECT: sends the request on a connection to a
 * frontend, and is the conduit that the connection becomes once it is granted.
 *
 * @module
 */

import { codeOfWords, DialError } from "../../proto/peer/dial_error.ts";
import type { Code } from "../../proto/codes/codes.ts";
import { type DialWishes, wishFields } from "../../proto/link/dial_wishes.ts";
import {
  formatTraceparent,
  type TraceContext,
  TRACEPARENT_FIELD,
} from "../../proto/peer/trace_context.ts";
import {
  CONNECTION_ID_FIELD,
  type ConnectionId,
} from "../../proto/peer/connection_id.ts";
import type { DialEvents, PendingDial } from "../../proto/link/link.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import {
  type ConnectAnswer,
  ConnectAnswerReader,
  type ConnectRefusal,
} from "./connect_answer.ts";
import { MessageError } from "./refusal.ts";

/** What may go with the request. */
export interface ConnectOptions extends DialWishes {
  /** The connection's. */
  readonly id?: ConnectionId | undefined;
  /** The span that asks. */
  readonly trace?: TraceContext | undefined;
  /**
   * The first bytes for the target; sent in one write with the request. At
   * most `EARLY_BYTES_MAX`, which a fresh socket always takes.
   */
  readonly earlyData?: Uint8Array | undefined;
}

/**
 * Requests `address` and reports once.
 *
 * @param socket A fresh connection to the frontend; nothing attached yet.
 * @param address `host:port`, IPv6 in brackets.
 */
export function dialConnect(
  socket: Conduit,
  address: string,
  events: DialEvents,
  options: ConnectOptions = {},
): PendingDial {
  return new ConnectClient(socket, address, events, options);
}

type Phase =
  | Asking
  | HeldBytes
  | { readonly kind: "open"; readonly events: ConduitEvents }
  | { readonly kind: "over" };

interface Asking {
  readonly kind: "requested";
  readonly reader: ConnectAnswerReader;
  readonly outcome: DialEvents;
}

/** Granted; later bytes are kept until a receiver attaches. */
interface HeldBytes {
  readonly kind: "held";
  /** Bounded by what the socket delivers ahead: one read. */
  readonly chunks: Uint8Array[];
  hasEnded: boolean;
  close?: ConduitEnd;
  /** The receiver that attached, and gets it in a moment. */
  events?: ConduitEvents;
}

class ConnectClient implements Conduit, ConduitEvents, PendingDial {
  readonly datagrams = false;
  #phase: Phase;

  constructor(
    private readonly socket: Conduit,
    address: string,
    outcome: DialEvents,
    options: ConnectOptions,
  ) {
    const reader = new ConnectAnswerReader("the server");
    this.#phase = { kind: "requested", reader, outcome };
    socket.attach(this);
    const { earlyData } = options;
    socket.write(request(address, options));
    if (earlyData !== undefined) socket.write(earlyData);
  }

  cancel(): void {
    if (this.#phase.kind !== "requested") return;
    this.#phase = { kind: "over" };
    this.socket.reset("the caller gave up");
  }

  // --- Towards the owner, once it is granted ---------------------------------

  attach(events: ConduitEvents): void {
    const phase = this.#phase;
    if (phase.kind !== "held" || phase.events !== undefined) {
      throw new TypeError("Cannot attach to a conduit twice");
    }
    phase.events = events;
    // Not now: a transfer has yet to attach to the other conduit.
    queueMicrotask(() => this.#open(phase, events));
  }

  write(chunk: Uint8Array): number {
    return this.socket.write(chunk);
  }

  end(): void {
    this.socket.end();
  }

  reset(reason: string, kind?: "reset" | "lost"): void {
    this.socket.reset(reason, kind);
  }

  consumed(bytes: number): void {
    this.socket.consumed(bytes);
  }

  // --- From the socket -------------------------------------------------------

  onData(chunk: Uint8Array): void {
    const phase = this.#phase;
    switch (phase.kind) {
      case "requested":
        return this.#onAnswer(phase, chunk);
      case "held":
        phase.chunks.push(chunk.slice());
        return;
      case "open":
        return phase.events.onData(chunk);
      case "over":
        return this.socket.consumed(chunk.length);
    }
  }

  onEnd(): void {
    const phase = this.#phase;
    switch (phase.kind) {
      case "requested": {
        const refusal = phase.reader.end();
        if (refusal !== undefined) return this.#refused(phase, refusal);
        return this.#fail(
          phase,
          "link-lost",
          "the server answered nothing, and closed the connection",
        );
      }
      case "held":
        phase.hasEnded = true;
        return;
      case "open":
        return phase.events.onEnd();
      case "over":
    }
  }

  onClose(end: ConduitEnd): void {
    const phase = this.#phase;
    switch (phase.kind) {
      case "requested":
        return this.#onBroken(phase, end);
      case "held":
        phase.close = end;
        return;
      case "open":
        return phase.events.onClose(end);
      case "over":
    }
  }

  onWritable(): void {
    const phase = this.#phase;
    if (phase.kind === "held" || phase.kind === "open") {
      phase.events?.onWritable();
    }
  }

  // --- From phase to phase ---------------------------------------------------

  #onAnswer(phase: Asking, chunk: Uint8Array): void {
    let answer: ConnectAnswer | undefined;
    try {
      answer = phase.reader.push(chunk);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.socket.consumed(chunk.length);
      return this.#fail(phase, "link-lost", error.message);
    }
    if (answer?.kind === "granted") {
      return this.#granted(phase, chunk.length, answer.early);
    }
    this.socket.consumed(chunk.length);
    if (answer !== undefined) this.#refused(phase, answer);
  }

  #granted({ outcome }: Asking, bytes: number, early: Uint8Array): void {
    const chunks = early.length === 0 ? [] : [early];
    this.#phase = { kind: "held", chunks, hasEnded: false };
    outcome.onConnected(this);
    this.socket.consumed(bytes - early.length);
  }

  #open({ chunks, hasEnded, close }: HeldBytes, events: ConduitEvents): void {
    this.#phase = { kind: "open", events };
    for (const chunk of chunks) events.onData(chunk);
    if (hasEnded) events.onEnd();
    if (close !== undefined) events.onClose(close);
  }

  #onBroken(phase: Asking, end: ConduitEnd): void {
    const refusal = phase.reader.end();
    if (refusal !== undefined) return this.#refused(phase, refusal);
    const why = end.kind === "clean" ? "it was closed" : end.reason;
    // A refused certificate, found out late, is a whole sentence already.
    const message = why.startsWith("Cannot ")
      ? why
      : `the connection to the server broke: ${why}`;
    this.#fail(phase, "link-lost", message);
  }

  #refused(phase: Asking, { status, sentence, code }: ConnectRefusal): void {
    const reason = REASONS.get(status) ?? "endpoint";
    this.#fail(phase, reason, sentence, code ?? codeOfWords(reason, sentence));
  }

  #fail(
    { outcome }: Asking,
    reason: DialError["reason"],
    message: string,
    code?: Code,
  ): void {
    this.#phase = { kind: "over" };
    this.socket.reset(message);
    // The request was sent whole, and may have been read.
    const loss = reason === "link-lost" ? "unanswered" : undefined;
    outcome.onFailed(new DialError(reason, message, { loss, code }));
  }
}

/**
 * What a status says beyond its sentence; Konnectivity marks a dial that took too
 * long by 504 alone.
 */
const REASONS: ReadonlyMap<number, DialError["reason"]> = new Map([
  [403, "refused"],
  [503, "no-agent"],
  [504, "timeout"],
]);

/** kube-apiserver's very words; the Host header is never the target. */
function request(
  address: string,
  { id, trace, ...wishes }: ConnectOptions,
): Uint8Array {
  const wishLines = wishFields(wishes)
    .map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const idLine = id === undefined ? "" : `${CONNECTION_ID_FIELD}: ${id}\r\n`;
  const traceLine = trace === undefined
    ? ""
    : `${TRACEPARENT_FIELD}: ${formatTraceparent(trace)}\r\n`;
  return new TextEncoder().encode(
    `CONNECT ${address} HTTP/1.1\r\nHost: 127.0.0.1\r\n${wishLines}${idLine}` +
      `${traceLine}\r\n`,
  );
}
