/**
 * One end of a tunneled connection as its owner would use it: sends what it is
 * planned to, checks what it receives byte for byte, stalls, ends, gives up.
 *
 * @module
 */

import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import type { Pattern } from "./pattern.ts";
import type { TalkPlan } from "./plan.ts";
import type { Simulator } from "./simulator.ts";

/** What a talker needs. */
export interface TalkerOptions {
  readonly sim: Simulator;
  /** For the trace and for failures, such as `caller 3`. */
  readonly name: string;
  readonly plan: TalkPlan;
  readonly outgoing: Pattern;
  readonly incoming: Pattern;
  /** Bytes that went ahead with the dial. */
  readonly sentBytes: number;
}

/** What one end must know of the other to check what it receives. */
export interface OtherEnd {
  /** What its conduit took. */
  readonly sent: number;
  readonly hasEnded: boolean;
}

/** See the module description. */
export class Talker implements ConduitEvents {
  readonly plan: TalkPlan;
  readonly #sim: Simulator;
  readonly #name: string;
  readonly #outgoing: Pattern;
  readonly #incoming: Pattern;
  #conduit!: Conduit;
  #other: OtherEnd | undefined;
  /** Bytes, or datagrams, that the conduit took. */
  sent: number;
  received = 0;
  /** When it last got on: sent, read or began to. */
  lastReceivedMs = 0;
  readyToReadMs = 0;
  readyToWriteMs = 0;
  hasReset = false;
  hasEnded = false;
  peerEnded = false;
  end: ConduitEnd | undefined;
  #hasPaused = false;
  #hasStalled = false;
  #isStalled = false;
  #isPaused = false;
  #isShort = false;
  #isStepDue = false;
  #unconsumed = 0;
  /** The highest number of a datagram that came. */
  #lastDatagram = -1;

  constructor(options: TalkerOptions) {
    this.plan = options.plan;
    this.#sim = options.sim;
    this.#name = options.name;
    this.#outgoing = options.outgoing;
    this.#incoming = options.incoming;
    this.sent = options.sentBytes;
  }

  /** Begins to talk on `conduit`, at once. */
  start(conduit: Conduit): void {
    this.#conduit = conduit;
    this.readyToReadMs = this.readyToWriteMs = this.#sim.now();
    conduit.attach(this);
    this.#due(0);
  }

  /** Who is at the other end, as soon as there is somebody. */
  faces(other: OtherEnd): void {
    this.#other = other;
    if (other instanceof Talker) other.#other = this;
  }

  /** It has bytes to send, and is in no pause. */
  get wantsToSend(): boolean {
    return this.end === undefined && !this.#isPaused && !this.hasReset &&
      !this.hasEnded && this.sent < this.plan.bytes;
  }

  /** It reads what comes. */
  get isReading(): boolean {
    return this.end === undefined && !this.#isStalled && !this.hasReset;
  }

  /** Bytes delivered and not answered. */
  get unconsumedBytes(): number {
    return this.#unconsumed;
  }

  onData(chunk: Uint8Array): void {
    this.#mustBeOpen("data");
    if (this.peerEnded) this.#fail("receives data behind the end");
    if (this.#conduit.datagrams) this.#hearDatagram(chunk);
    else this.#hear(chunk);
    this.lastReceivedMs = this.#sim.now();
    this.#answer(chunk.length);
    this.#due(0);
  }

  onWritable(): void {
    this.#mustBeOpen("room");
    this.#isShort = false;
    this.#due(0);
  }

  onEnd(): void {
    this.#mustBeOpen("an end");
    if (this.peerEnded) this.#fail("receives two ends");
    this.peerEnded = true;
    this.#sim.note(`${this.#name} hears the end`, this.received);
    this.#mustHaveAll("an end");
    this.#due(0);
  }

  onClose(end: ConduitEnd): void {
    this.#mustBeOpen("a close");
    this.end = end;
    this.#sim.note(
      `${this.#name} closes ${end.kind}`,
      this.received,
      this.sent,
    );
    if (end.kind !== "clean") return;
    if (!this.peerEnded || !this.hasEnded) {
      this.#fail("closes clean although not both ends have ended");
    }
    this.#mustHaveAll("a clean close");
  }

  // --- What it receives ------------------------------------------------------

  #hear(chunk: Uint8Array): void {
    const at = this.#incoming.differenceAt(this.received, chunk);
    if (at >= 0) this.#fail(`receives another byte at ${at} than was sent`);
    this.received += chunk.length;
    this.#sim.note(this.#name, this.received);
    const sent = this.#other?.sent ?? 0;
    if (this.received > sent) {
      this.#fail(`receives ${this.received} bytes where ${sent} were sent`);
    }
  }

  #hearDatagram(datagram: Uint8Array): void {
    this.received++;
    // An empty one has no number.
    if (datagram.length === 0) return;
    const number = this.#incoming.numberOf(datagram);
    if (number < 0) this.#fail("receives a datagram that is not whole");
    if (number <= this.#lastDatagram) {
      this.#fail(`receives datagram ${number} behind ${this.#lastDatagram}`);
    }
    this.#lastDatagram = number;
  }

  #mustHaveAll(what: string): void {
    const other = this.#other;
    if (other === undefined || !other.hasEnded) {
      return this.#fail(
        `receives ${what} although the other end has not ended`,
      );
    }
    if (this.#conduit.datagrams || this.received === other.sent) return;
    this.#fail(
      `receives ${what} with ${this.received} bytes of ${other.sent}`,
    );
  }

  #mustBeOpen(what: string): void {
    if (this.end !== undefined) this.#fail(`receives ${what} behind its close`);
  }

  #answer(bytes: number): void {
    const { stallAt, stallMs, isLate } = this.plan;
    this.#unconsumed += bytes;
    if (!this.#hasStalled && stallAt >= 0 && this.received >= stallAt) {
      this.#hasStalled = this.#isStalled = true;
      this.#sim.post(`${this.#name} reads again`, stallMs, () => {
        this.#isStalled = false;
        this.readyToReadMs = this.#sim.now();
        this.#consume();
      });
    }
    if (this.#isStalled) return;
    if (isLate) {
      this.#sim.post(`${this.#name} answers`, 0, () => this.#consume());
    } else this.#consume();
  }

  #consume(): void {
    const bytes = this.#unconsumed;
    if (bytes === 0 || this.#isStalled || this.end !== undefined) return;
    this.#unconsumed = 0;
    this.#conduit.consumed(bytes);
  }

  // --- What it says ----------------------------------------------------------

  #due(delayMs: number): void {
    if (this.#isStepDue) return;
    this.#isStepDue = true;
    this.#sim.post(`${this.#name} acts`, delayMs, () => {
      this.#isStepDue = false;
      this.#isPaused = false;
      this.#step();
    });
  }

  #step(): void {
    if (this.end !== undefined || this.hasEnded || this.hasReset) return;
    const { resetAt, pauseAt, pauseMs, bytes, endsLast } = this.plan;
    if (resetAt >= 0 && this.sent + this.received >= resetAt) {
      this.hasReset = true;
      this.#sim.note(`${this.#name} gives up`, this.sent, this.received);
      return this.#conduit.reset("gave up");
    }
    if (!this.#hasPaused && pauseAt >= 0 && this.sent >= pauseAt) {
      this.#hasPaused = this.#isPaused = true;
      this.readyToWriteMs = this.#sim.now() + pauseMs;
      return this.#due(pauseMs);
    }
    if (this.sent < bytes) return this.#send();
    if (endsLast && !this.peerEnded) return;
    this.hasEnded = true;
    this.#sim.note(`${this.#name} ends`, this.sent);
    this.#conduit.end();
  }

  #send(): void {
    if (this.#isShort) return;
    const { bytes, chunkBytes } = this.plan;
    if (this.#conduit.datagrams) {
      const datagram = this.#outgoing.datagram(this.sent++, chunkBytes);
      this.#conduit.write(datagram);
      return this.#due(0);
    }
    const size = Math.min(
      bytes - this.sent,
      1 + this.#sim.prng.below(chunkBytes),
    );
    const before = this.sent;
    // What is heard of it inside the call must count as sent.
    this.sent += size;
    this.#isShort = true;
    const taken = this.#conduit.write(this.#outgoing.piece(before, size));
    this.sent = before + taken;
    if (taken < size) return;
    this.#isShort = false;
    this.#due(0);
  }

  #fail(what: string): void {
    this.#sim.fail(`${this.#name} ${what}`);
  }
}
