/**
 * One HTTP CONNECT client, from its first byte to the transfer.
 *
 * It wraps the client's socket conduit. First it reads the request head; once
 * the dial is answered it is a conduit like any other, with two rules of its
 * own:
 * - the 200 leaves strictly before the target's first byte;
 * - that byte waits for the client's first byte, or a short time: see
 *   `FirstHold`.
 *
 * An early 200 leaves before the dial is answered, and the client's bytes
 * follow the dial at once. The price: a dial that then fails can only end in a
 * reset.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import type { DialAnswer } from "../../proto/link/dial_handler.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import { EARLY_BYTES_MAX, type PendingDial } from "../../proto/link/link.ts";
import { FirstHold, type HoldOwner } from "../../proto/link/first_hold.ts";
import {
  type SharedLimits,
  UNSHARED,
} from "../../proto/streams/abuse_limits.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import {
  CONNECT_EXAMPLE,
  type ConnectRequest,
  connectRequestOf,
} from "./connect_request.ts";
import { RequestReader } from "./head.ts";
import { MessageError, refusalBytes } from "./refusal.ts";
import { dialFailureStatus } from "../../policy/refusal.ts";

/** How long a client may take for its request head (upstream's 60 s). */
export const CONNECT_HEAD_TIMEOUT_MS = 60_000;

/** How long a refused client may take to read why and hang up. */
export const REFUSED_LINGER_MS = 2_000;

/**
 * How long a dial goes on whose client has ended its side without a word: a
 * script that waits for the answer and a client that has hung up (a cancelled
 * webhook, kubernetes#140512) look alike. Most dials are answered by then, and a
 * connect that is not must not stay on the node.
 */
export const ENDED_WAIT_MS = 300;

/** A dial as a CONNECT client requests it. */
export interface ConnectDialRequest<Caller>
  extends Omit<ConnectRequest, "target"> {
  readonly target: DialTarget;
  readonly caller: Caller;
  /** See `DialContext.takeEarlyData`. */
  takeEarlyData(): Uint8Array;
}

/**
 * What a CONNECT session needs from its server.
 *
 * @template Caller What is known of the client's identity.
 */
export interface ConnectSessionOptions<Caller> {
  readonly timers: Timers;
  /** The 200 does not wait for the dial. */
  readonly grantsEarly?: boolean;
  dial(order: ConnectDialRequest<Caller>, answer: DialAnswer): PendingDial;
  /** The tunnel is open: join both conduits. */
  join(client: Conduit, target: Conduit): void;
  /**
   * For the log; called once per refused request.
   *
   * @param isDial The target was dialed, and the dial failed.
   */
  refused(status: number, message: string, isDial: boolean): void;
  /** The connection is over. */
  closed?(): void;
}

/** A dial that is under way. */
interface Dialing {
  /** `granted`: the 200 has left, ahead of the dial's answer. */
  kind: "dialing" | "granted";
  pending: PendingDial | undefined;
  /** The client sends no more. */
  hasEnded: boolean;
}

type Phase =
  | { readonly kind: "head"; readonly reader: RequestReader }
  | Dialing
  | { readonly kind: "open"; readonly events: ConduitEvents }
  | { readonly kind: "lingering" }
  | { readonly kind: "over" };

export class ConnectSession<Caller>
  implements Conduit, ConduitEvents, HoldOwner {
  readonly datagrams = false;
  /** Bytes of a head that is not complete, as `shared` counts them. */
  #headBytes = 0;
  #phase: Phase = { kind: "head", reader: new RequestReader(CONNECT_EXAMPLE) };
  #timer: Timer | undefined;
  /** What the client sent behind its head and is not taken yet. */
  #early = NO_BYTES;
  /** From the dial until the client has sent bytes for the target. */
  #hold: FirstHold | undefined;

  /**
   * @param socket The client's connection; nothing attached to it yet.
   * @param caller The client's identity.
   * @param shared What it shares with others of its source.
   */
  constructor(
    private readonly socket: Conduit,
    private readonly caller: Caller,
    private readonly options: ConnectSessionOptions<Caller>,
    private readonly shared: SharedLimits = UNSHARED,
  ) {
    this.#timer = options.timers.after(
      CONNECT_HEAD_TIMEOUT_MS,
      () =>
        this.#refuse(
          408,
          `Cannot wait longer than ${
            CONNECT_HEAD_TIMEOUT_MS / 1000
          } s for a request head`,
        ),
    );
    socket.attach(this);
  }

  // --- Events of the client's socket -------------------------------------------

  onData(chunk: Uint8Array): void {
    switch (this.#phase.kind) {
      case "head":
        return this.#onHeadData(this.#phase.reader, chunk);
      case "dialing":
      case "granted":
        return this.#onEarlyData(this.#phase.pending, chunk);
      case "open":
        this.#hold?.release();
        this.#phase.events.onData(chunk);
        return;
      case "lingering":
      case "over":
        this.socket.consumed(chunk.length);
    }
  }

  onEnd(): void {
    switch (this.#phase.kind) {
      case "head":
        this.#over();
        this.socket.end();
        return;
      case "dialing":
        this.#phase.hasEnded = true;
        if (this.#hold !== undefined) this.#waitNotLong(this.#phase);
        return;
      case "granted":
        // The tunnel is open to it: that is a half-close like any other.
        this.#phase.hasEnded = true;
        return;
      case "open":
        this.#phase.events.onEnd();
        return;
      case "lingering":
      case "over":
    }
  }

  onClose(end: ConduitEnd): void {
    const phase = this.#phase;
    this.#over();
    if (isDialing(phase)) phase.pending?.cancel();
    if (phase.kind === "open") phase.events.onClose(end);
    this.options.closed?.();
  }

  onWritable(): void {
    if (this.#phase.kind === "open") this.#phase.events.onWritable();
  }

  // --- Calls of the transfer loop ---------------------------------------------

  attach(events: ConduitEvents): void {
    const hasEnded = isDialing(this.#phase) && this.#phase.hasEnded;
    this.#phase = { kind: "open", events };
    this.#cancelTimer();
    if (this.#early.length === 0 && !hasEnded) return;
    // Not now: the loop has yet to attach to the other end.
    queueMicrotask(() => {
      const early = this.#early;
      this.#early = NO_BYTES;
      if (this.#phase.kind !== "open") return;
      if (early.length > 0) events.onData(early);
      if (hasEnded) events.onEnd();
    });
  }

  write(chunk: Uint8Array): number {
    return this.#mustHold() ? 0 : this.socket.write(chunk);
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

  // --- From phase to phase ---------------------------------------------------

  #onHeadData(reader: RequestReader, chunk: Uint8Array): void {
    let request: ConnectRequest;
    let early: Uint8Array;
    try {
      const read = reader.push(chunk);
      if (read === undefined) return this.#onPartOfHead(chunk.length);
      request = connectRequestOf(read.head);
      early = read.rest;
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.socket.consumed(chunk.length);
      return this.#refuse(error.status, error.message);
    }
    this.#giveHeadBytes();
    this.#cancelTimer();
    this.#early = early;
    if (early.length === 0) {
      this.#hold = new FirstHold(this.options.timers, this);
    }
    this.socket.consumed(chunk.length - early.length);
    this.#dial(request);
  }

  #onPartOfHead(bytes: number): void {
    this.socket.consumed(bytes);
    if (this.shared.takeHeaderBytes(bytes)) this.#headBytes += bytes;
    else {this.#refuse(
        503,
        "Cannot read a request head: too many are incomplete",
      );}
  }

  #giveHeadBytes(): void {
    if (this.#headBytes === 0) return;
    this.shared.giveHeaderBytes(this.#headBytes);
    this.#headBytes = 0;
  }

  #dial(request: ConnectRequest): void {
    const phase: Dialing = {
      kind: "dialing",
      pending: undefined,
      hasEnded: false,
    };
    this.#phase = phase;
    const order: ConnectDialRequest<Caller> = {
      ...request,
      target: { protocol: "tcp", address: request.target },
      caller: this.caller,
      takeEarlyData: () => this.#takeEarly(),
    };
    try {
      phase.pending = this.options.dial(order, {
        connected: (conduit) => {
          this.#grant(phase);
          this.options.join(this, conduit);
        },
        failed: (error) => this.#onDialFailed(error),
      });
    } catch (error) {
      reportInternalError("dial", error);
      return this.#onDialFailed(
        new DialError("endpoint", INTERNAL_ERROR, { code: "TUN907" }),
      );
    }
    // After the dial: a refusal that is known at once is still sent as an
    // answer.
    if (this.options.grantsEarly && this.#phase === phase) this.#grant(phase);
  }

  /** See `ENDED_WAIT_MS`. */
  #waitNotLong(dialing: Dialing): void {
    this.#cancelTimer();
    this.#timer = this.options.timers.after(ENDED_WAIT_MS, () => {
      if (this.#phase !== dialing) return;
      dialing.pending?.cancel();
      this.#refuse(
        504,
        "Cannot wait for the target: the client has ended its side before " +
          "the tunnel was open, and no answer came soon",
        true,
      );
    });
  }

  #grant(dialing: Dialing): void {
    if (dialing.kind === "granted") return;
    dialing.kind = "granted";
    this.socket.write(ESTABLISHED);
    this.#hold?.restart();
  }

  /** Bytes for a target that has not answered yet. */
  #onEarlyData(pending: PendingDial | undefined, chunk: Uint8Array): void {
    this.#hold = undefined;
    const taken = this.#early.length === 0
      ? pending?.sendEarly?.(chunk) ?? 0
      : 0;
    if (taken > 0) this.socket.consumed(taken);
    if (taken === chunk.length) return;
    // Not consumed, so the socket reads no further: at most one read is kept
    // here.
    this.#early = joinedBytes([this.#early, chunk.subarray(taken)]);
  }

  /** The agent gets it together with the dial: a round trip is saved. */
  #takeEarly(): Uint8Array {
    const early = this.#early;
    if (early.length > EARLY_BYTES_MAX) return NO_BYTES;
    this.#dropEarly();
    return early;
  }

  #dropEarly(): void {
    const { length } = this.#early;
    if (length === 0) return;
    this.#early = NO_BYTES;
    this.socket.consumed(length);
  }

  #onDialFailed(error: DialError): void {
    const status = dialFailureStatus(error);
    if (this.#phase.kind !== "granted") {
      return this.#refuse(status, error.message, true, error.tunnelCode);
    }
    this.#over();
    this.options.refused(status, error.message, true);
    this.socket.reset(error.message);
  }

  #refuse(
    status: number,
    message: string,
    isDial = false,
    code?: Code,
  ): void {
    if (this.#phase.kind === "over") return;
    this.#phase = { kind: "lingering" };
    this.#giveHeadBytes();
    this.#cancelTimer();
    this.options.refused(status, message, isDial);
    this.socket.write(refusalBytes(status, message, code));
    this.socket.end();
    this.#dropEarly();
    // Closing at once could turn the answer into a TCP reset when the client
    // has sent bytes that are unread.
    this.#timer = this.options.timers.after(
      REFUSED_LINGER_MS,
      () => this.socket.reset("the client did not hang up after a refusal"),
    );
  }

  #mustHold(): boolean {
    if (this.#hold === undefined) return false;
    if (this.#hold.mustWait()) return true;
    this.#hold = undefined;
    return false;
  }

  onHoldOver(): void {
    this.#hold = undefined;
    this.onWritable();
  }

  #over(): void {
    this.#phase = { kind: "over" };
    this.#giveHeadBytes();
    this.#cancelTimer();
    this.#hold?.cancel();
  }

  #cancelTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/** The only answer that opens the tunnel. No header follows, as upstream. */
const ESTABLISHED = new TextEncoder().encode(
  "HTTP/1.1 200 Connection Established\r\n\r\n",
);

function isDialing(phase: Phase): phase is Dialing {
  return phase.kind === "dialing" || phase.kind === "granted";
}

const NO_BYTES: Uint8Array = new Uint8Array(0);
