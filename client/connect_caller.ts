/**
 * The caller's side of HTTP CONNECT: asks on a connection to a frontend, and
 * turns that connection into the conduit once it is granted.
 *
 * @module
 */

import { HeadBuffer } from "../proto/bytes/head_buffer.ts";
import {
  DialError,
  type DialEvents,
  type PendingDial,
} from "../proto/link/link.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../proto/transfer/conduit.ts";

/** Most octets of a response head; Go's default for these is 1 MiB. */
export const RESPONSE_HEAD_OCTETS_MAX = 65_536;

/** Most octets of a refusal's body that are shown. */
export const REFUSAL_BODY_OCTETS_MAX = 4_096;

type Phase =
  | { readonly kind: "head"; readonly head: HeadBuffer }
  | { readonly kind: "refused"; readonly status: string; body: string }
  | { readonly kind: "open"; readonly events: ConduitEvents }
  | { readonly kind: "over" };

/**
 * Asks for `address` and reports once.
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
  return new ConnectCaller(socket, address, events, options);
}

/** What may go with the request. */
export interface ConnectOptions {
  /** The only node wanted. */
  readonly node?: string;
  /** The first octets for the target; sent in one write with the request. */
  readonly earlyData?: Uint8Array;
}

class ConnectCaller implements Conduit, ConduitEvents, PendingDial {
  readonly datagrams = false;
  readonly #socket: Conduit;
  readonly #outcome: DialEvents;
  #phase: Phase = {
    kind: "head",
    head: new HeadBuffer(RESPONSE_HEAD_OCTETS_MAX),
  };
  #socketEnded = false;

  constructor(
    socket: Conduit,
    address: string,
    outcome: DialEvents,
    { node, earlyData }: ConnectOptions,
  ) {
    this.#socket = socket;
    this.#outcome = outcome;
    socket.attach(this);
    const nodeLine = node === undefined ? "" : `Tunnel-Node: ${node}\r\n`;
    // kube-apiserver's very words; the Host header is never the target.
    socket.write(
      new TextEncoder().encode(
        `CONNECT ${address} HTTP/1.1\r\nHost: 127.0.0.1\r\n${nodeLine}\r\n`,
      ),
    );
    if (earlyData !== undefined) socket.write(earlyData);
  }

  cancel(): void {
    this.#phase = { kind: "over" };
    this.#socket.reset("the caller gave up");
  }

  // --- What the frontend's socket tells us -----------------------------------

  onData(chunk: Uint8Array): void {
    switch (this.#phase.kind) {
      case "head":
        return this.#onHeadData(this.#phase.head, chunk);
      case "refused":
        this.#onRefusalBody(this.#phase, chunk);
        return this.#socket.consumed(chunk.length);
      case "open":
        return this.#phase.events.onData(chunk);
      case "over":
        return this.#socket.consumed(chunk.length);
    }
  }

  onEnd(): void {
    this.#socketEnded = true;
    const phase = this.#phase;
    if (phase.kind === "open") return phase.events.onEnd();
    if (phase.kind === "refused") return this.#refuse(phase);
    if (phase.kind === "head") {
      this.#fail("link-lost", "the server closed the connection unanswered");
    }
  }

  onClose(end: ConduitEnd): void {
    const phase = this.#phase;
    if (phase.kind === "open") {
      this.#phase = { kind: "over" };
      return phase.events.onClose(end);
    }
    if (phase.kind === "refused") return this.#refuse(phase);
    if (phase.kind === "head") {
      const why = end.kind === "clean" ? "it was closed" : end.reason;
      this.#fail("link-lost", `the connection to the server broke: ${why}`);
    }
  }

  onWritable(): void {
    if (this.#phase.kind === "open") this.#phase.events.onWritable();
  }

  // --- The conduit, once granted ---------------------------------------------

  attach(events: ConduitEvents): void {
    this.#phase = { kind: "open", events };
  }

  write(chunk: Uint8Array): number {
    return this.#socket.write(chunk);
  }

  end(): void {
    this.#socket.end();
  }

  reset(reason: string, kind?: "reset" | "lost"): void {
    this.#socket.reset(reason, kind);
  }

  consumed(octets: number): void {
    this.#socket.consumed(octets);
  }

  // --- The answer ------------------------------------------------------------

  #onHeadData(head: HeadBuffer, chunk: Uint8Array): void {
    const gathered = head.push(chunk);
    if (gathered.kind === "incomplete") {
      return this.#socket.consumed(chunk.length);
    }
    if (gathered.kind === "tooLarge") {
      this.#fail(
        "link-lost",
        `the server's answer has a head of more than ${RESPONSE_HEAD_OCTETS_MAX} octets`,
      );
      return this.#socket.consumed(chunk.length);
    }
    const [statusLine = ""] = gathered.lines;
    const match = /^HTTP\/1\.[01] ([0-9]{3})(?: (.*))?$/.exec(statusLine);
    if (match === null) {
      this.#fail(
        "link-lost",
        `the server answered ${JSON.stringify(statusLine.slice(0, 80))}, ` +
          "which is not HTTP/1.1",
      );
      return this.#socket.consumed(chunk.length);
    }
    if (match[1] === "200") return this.#open(chunk.length, gathered.rest);
    const status = `${match[1]} ${match[2] ?? ""}`.trim();
    const refused: Phase = { kind: "refused", status, body: "" };
    this.#phase = refused;
    this.#onRefusalBody(refused, gathered.rest);
    this.#socket.consumed(chunk.length);
  }

  #open(seen: number, early: Uint8Array): void {
    this.#outcome.onConnected(this);
    this.#socket.consumed(seen - early.length);
    if (early.length === 0) return;
    // Not now: whoever joins two conduits has yet to attach to the other one.
    queueMicrotask(() => {
      if (this.#phase.kind === "open") this.#phase.events.onData(early);
    });
  }

  #onRefusalBody(phase: { body: string }, octets: Uint8Array): void {
    const room = REFUSAL_BODY_OCTETS_MAX - phase.body.length;
    phase.body += new TextDecoder().decode(octets.subarray(0, room));
  }

  #refuse(phase: { readonly status: string; readonly body: string }): void {
    const sentence = phase.body.trim() || phase.status;
    const reason = phase.status.startsWith("504") ? "timeout" : "endpoint";
    this.#fail(reason, sentence);
  }

  #fail(reason: DialError["reason"], message: string): void {
    this.#phase = { kind: "over" };
    if (!this.#socketEnded) this.#socket.reset(message);
    else this.#socket.end();
    this.#outcome.onFailed(new DialError(reason, message));
  }
}
