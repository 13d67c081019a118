/**
 * The caller's side of HTTP CONNECT: asks on a connection to a frontend, and
 * turns that connection into the conduit once it is granted.
 *
 * @module
 */

import { NODE_FIELD, ONE_AGENT_FIELD } from "../../proto/link/dial_handler.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
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
import { ConnectConduit } from "./connect_conduit.ts";
import { MessageError } from "./message_error.ts";

/** What may go with the request. */
export interface ConnectOptions {
  /** The only node wanted. */
  readonly node?: string;
  /** See `ONE_AGENT_FIELD`. */
  readonly oneAgent?: boolean;
  /**
   * The first bytes for the target; sent in one write with the request. At
   * most `EARLY_BYTES_MAX`, which a fresh socket always takes.
   */
  readonly earlyData?: Uint8Array;
}

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
  return new ConnectClient(socket, address, events, options);
}

type Phase =
  | { readonly kind: "asking"; readonly reader: ConnectAnswerReader }
  | { readonly kind: "open"; readonly conduit: ConnectConduit }
  | { readonly kind: "over" };

class ConnectClient implements ConduitEvents, PendingDial {
  readonly #socket: Conduit;
  readonly #outcome: DialEvents;
  #phase: Phase = {
    kind: "asking",
    reader: new ConnectAnswerReader("the server"),
  };

  constructor(
    socket: Conduit,
    address: string,
    outcome: DialEvents,
    { node, oneAgent, earlyData }: ConnectOptions,
  ) {
    this.#socket = socket;
    this.#outcome = outcome;
    socket.attach(this);
    socket.write(request(address, node, oneAgent === true));
    if (earlyData !== undefined) socket.write(earlyData);
  }

  cancel(): void {
    if (this.#phase.kind !== "asking") return;
    this.#phase = { kind: "over" };
    this.#socket.reset("the caller gave up");
  }

  onData(chunk: Uint8Array): void {
    const phase = this.#phase;
    switch (phase.kind) {
      case "asking":
        return this.#onAnswer(phase.reader, chunk);
      case "open":
        return phase.conduit.onData(chunk);
      case "over":
        return this.#socket.consumed(chunk.length);
    }
  }

  onEnd(): void {
    const phase = this.#phase;
    if (phase.kind === "open") return phase.conduit.onEnd();
    if (phase.kind === "over") return;
    const refusal = phase.reader.end();
    if (refusal !== undefined) return this.#refused(refusal);
    this.#fail(
      "link-lost",
      "the server answered nothing, and closed the connection",
    );
  }

  onClose(end: ConduitEnd): void {
    const phase = this.#phase;
    if (phase.kind === "open") return phase.conduit.onClose(end);
    if (phase.kind === "over") return;
    const refusal = phase.reader.end();
    if (refusal !== undefined) return this.#refused(refusal);
    const why = end.kind === "clean" ? "it was closed" : end.reason;
    // A refused certificate, found out late, is a whole sentence already.
    const message = why.startsWith("Cannot ")
      ? why
      : `the connection to the server broke: ${why}`;
    this.#fail("link-lost", message);
  }

  onWritable(): void {
    if (this.#phase.kind === "open") this.#phase.conduit.onWritable();
  }

  #onAnswer(reader: ConnectAnswerReader, chunk: Uint8Array): void {
    let answer: ConnectAnswer | undefined;
    try {
      answer = reader.push(chunk);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.#socket.consumed(chunk.length);
      return this.#fail("link-lost", error.message);
    }
    if (answer?.kind === "granted") this.#open(chunk.length, answer.early);
    else {
      this.#socket.consumed(chunk.length);
      if (answer !== undefined) this.#refused(answer);
    }
  }

  #open(bytes: number, early: Uint8Array): void {
    const conduit = new ConnectConduit(this.#socket);
    this.#phase = { kind: "open", conduit };
    if (early.length > 0) conduit.onData(early);
    this.#outcome.onConnected(conduit);
    this.#socket.consumed(bytes - early.length);
  }

  #refused({ status, sentence }: ConnectRefusal): void {
    // Konnectivity tells a dial that took too long by this status alone.
    this.#fail(status === 504 ? "timeout" : "endpoint", sentence);
  }

  #fail(reason: DialError["reason"], message: string): void {
    this.#phase = { kind: "over" };
    this.#socket.reset(message);
    this.#outcome.onFailed(new DialError(reason, message));
  }
}

/** kube-apiserver's very words; the Host header is never the target. */
function request(
  address: string,
  node: string | undefined,
  oneAgent: boolean,
): Uint8Array {
  const nodeLine = node !== undefined
    ? `${NODE_FIELD}: ${node}\r\n`
    : oneAgent
    ? `${ONE_AGENT_FIELD}: true\r\n`
    : "";
  return new TextEncoder().encode(
    `CONNECT ${address} HTTP/1.1\r\nHost: 127.0.0.1\r\n${nodeLine}\r\n`,
  );
}
