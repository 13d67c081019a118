/**
 * Bugs on purpose: conduits that break one promise each. A simulation that does
 * not find them would find nothing.
 *
 * They stand between an agent and its target, so that no product code has to be
 * broken for them.
 *
 * @module
 */

import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import type { Tamper } from "./targets.ts";

/** A conduit that does what the one inside does. */
class Wrapped implements Conduit, ConduitEvents {
  readonly datagrams: boolean;
  protected events!: ConduitEvents;

  constructor(protected readonly inner: Conduit) {
    this.datagrams = inner.datagrams;
  }

  attach(events: ConduitEvents): void {
    this.events = events;
    this.inner.attach(this);
  }

  write(chunk: Uint8Array): number {
    return this.inner.write(chunk);
  }

  end(isGone?: boolean): void {
    this.inner.end(isGone);
  }

  reset(reason: string, kind?: "reset" | "lost"): void {
    this.inner.reset(reason, kind);
  }

  consumed(bytes: number): void {
    this.inner.consumed(bytes);
  }

  onData(chunk: Uint8Array): void {
    this.events.onData(chunk);
  }

  onWritable(): void {
    this.events.onWritable();
  }

  onEnd(isGone?: boolean): void {
    this.events.onEnd(isGone);
  }

  onClose(end: ConduitEnd): void {
    this.events.onClose(end);
  }
}

/** Forgets the last byte when its owner half-closes. */
class LosesTheLastByte extends Wrapped {
  #last: Uint8Array | undefined;

  override write(chunk: Uint8Array): number {
    if (this.datagrams || chunk.length === 0) return super.write(chunk);
    if (this.#last !== undefined && super.write(this.#last) === 0) return 0;
    const taken = super.write(chunk.subarray(0, -1));
    this.#last = undefined;
    if (taken < chunk.length - 1) return taken;
    this.#last = chunk.slice(-1);
    return chunk.length;
  }
}

/** Keeps the credit of one delivery in eight to itself. */
class KeepsCredit extends Wrapped {
  #deliveries = 0;

  override consumed(bytes: number): void {
    if (++this.#deliveries % 8 !== 0) super.consumed(bytes);
  }
}

/** Calls a reset an end. */
class CallsResetAnEnd extends Wrapped {
  override onClose(end: ConduitEnd): void {
    if (end.kind !== "reset") return super.onClose(end);
    this.onEnd();
    super.onClose({ kind: "clean" });
  }
}

/** Takes nothing more when it has carried a little, and never says so. */
class ForgetsWhoWaits extends Wrapped {
  #bytes = 0;

  override write(chunk: Uint8Array): number {
    if (this.#bytes > 1_000) return 0;
    this.#bytes += chunk.length;
    return super.write(chunk);
  }
}

/** By what each of them breaks. */
export const CANARIES: Readonly<Record<string, Tamper>> = {
  "drops the last byte in front of an end": (inner) =>
    new LosesTheLastByte(inner),
  "keeps credit": (inner) => new KeepsCredit(inner),
  "turns a reset into an end": (inner) => new CallsResetAnEnd(inner),
  "forgets whom it made wait": (inner) => new ForgetsWhoWaits(inner),
};
