/**
 * A header block on its way in: HEADERS and the CONTINUATION frames behind it
 * (RFC 9113 §6.10), gathered under two limits.
 *
 * Nothing else may come on the connection until the block is complete, so there
 * is at most one. The limits stop an attack: a peer that never sets END_HEADERS
 * makes the receiver hold, or at least count, bytes without end (CVE-2024-27316
 * and others).
 *
 * @module
 */

import { joinedBytes } from "../bytes/byte_arrays.ts";
import type { ContinuationFrame, HeadersFrame } from "../frames/frame.ts";
import { ErrorCode, WireError } from "../frames/wire_error.ts";
import { ExcessError, type SharedLimits, UNSHARED } from "./abuse_limits.ts";

/**
 * How long a block may take from HEADERS to its last CONTINUATION. No other
 * frame may come meanwhile, so a peer that begins one completes it; the longest
 * one allowed passes 60 kbit/s in that time.
 */
export const HEADER_BLOCK_TIMEOUT_MS = 20_000;

/** Facts about a block besides its bytes. */
export interface PendingBlock {
  readonly streamId: number;
  readonly endStream: boolean;
  readonly dependsOn: number | undefined;
}

/** Gathers one block at a time. */
export class HeaderBlockGatherer {
  #pending: PendingBlock | undefined;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #frames = 0;
  /** Of `shared`, until the block is complete. */
  #taken = 0;
  #deadlineMs = Infinity;

  /**
   * @param bytesMax The longest block, coded, over all its frames.
   * @param framesMax The most frames that a block may have.
   * @param shared What it may take of a limit on many connections.
   */
  constructor(
    private readonly bytesMax: number,
    private readonly framesMax: number,
    private readonly shared: SharedLimits = UNSHARED,
  ) {}

  /** The block that CONTINUATION must complete before anything else comes. */
  get pending(): PendingBlock | undefined {
    return this.#pending;
  }

  /** When {@linkcode overdue} is due. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  /** Why the connection ends when a block is not complete by its deadline. */
  overdue(): ExcessError {
    return new ExcessError(
      "headerBlock",
      `a header block is not complete after ${HEADER_BLOCK_TIMEOUT_MS} ms`,
      "10.5.1",
    );
  }

  /** Starts a block whose HEADERS lacks END_HEADERS. */
  begin(frame: HeadersFrame, nowMs: number): void {
    this.#deadlineMs = nowMs + HEADER_BLOCK_TIMEOUT_MS;
    const { streamId, endStream, dependsOn } = frame;
    this.#pending = { streamId, endStream, dependsOn };
    this.#add(frame.fragment);
  }

  /**
   * Adds a CONTINUATION.
   *
   * @returns The complete block if this was its end.
   * @throws {WireError} If it does not belong to the block or passes a limit.
   */
  add(frame: ContinuationFrame): Uint8Array | undefined {
    const expected = this.#pending?.streamId;
    if (frame.streamId !== expected) {
      throw new WireError(
        ErrorCode.PROTOCOL_ERROR,
        "6.10",
        `Cannot accept CONTINUATION on stream ${frame.streamId}: ${
          expected === undefined
            ? "no header block is open"
            : `the open header block is of stream ${expected}`
        }`,
      );
    }
    this.#add(frame.fragment);
    return frame.endHeaders ? this.#finish() : undefined;
  }

  #add(fragment: Uint8Array): void {
    this.#bytes += fragment.length;
    this.#frames++;
    if (this.#bytes > this.bytesMax || this.#frames > this.framesMax) {
      throw new ExcessError(
        "headerBlock",
        `a header block of ${this.#bytes} bytes in ${this.#frames} frames, ` +
          `wanted at most ${this.bytesMax} in ${this.framesMax}`,
        "10.5.1",
      );
    }
    if (!this.shared.takeHeaderBytes(fragment.length)) {
      throw new ExcessError(
        "shared",
        "too many header blocks of its kind are incomplete",
        "10.5.1",
      );
    }
    this.#taken += fragment.length;
    // The fragment is a view of the read buffer, which will be overwritten.
    this.#parts.push(fragment.slice());
  }

  #finish(): Uint8Array {
    const block = joinedBytes(this.#parts);
    this.drop();
    return block;
  }

  /** Drops the gathered part of a block. */
  drop(): void {
    this.#pending = undefined;
    this.#parts = [];
    this.#bytes = 0;
    this.#frames = 0;
    this.shared.giveHeaderBytes(this.#taken);
    this.#taken = 0;
    this.#deadlineMs = Infinity;
  }
}
