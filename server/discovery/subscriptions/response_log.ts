/**
 * The last response of one kind, how it was answered, and how many were.
 *
 * @module
 */

import type { ErrorDetail } from "../../../proto/xds/discovery.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import { NAME_LENGTH_MAX } from "./name_set.ts";
import { NACK_MESSAGE_MAX } from "./nacked.ts";
import type {
  KindStatus,
  NackedResponse,
  StampedResponse,
} from "./stream_status.ts";

/** A response that is not answered for so long does not hold up the next one. */
export const ANSWER_WAIT_MS = 10_000;

/**
 * A client that did not answer for so long is slow. What there was when it was
 * told is then let go of, and with it the knowledge of what came and went.
 */
export const SLOW_AFTER_MS = 1_000;

/**
 * - `none`: nothing was sent yet.
 * - `open`: it waits for its answer.
 * - `taken`, `refused`: it was answered.
 */
export type LastResponse = "none" | "open" | "taken" | "refused";

/** What the log says of a kind. */
export type LoggedStatus = Pick<
  KindStatus,
  | "sent"
  | "acked"
  | "nacked"
  | "inFlightSinceMs"
  | "responses"
  | "acks"
  | "nacks"
  | "staleRequests"
>;

/** See the module description. */
export class ResponseLog {
  #last: LastResponse = "none";
  #sent: StampedResponse | undefined;
  #acked: StampedResponse | undefined;
  #ackedMs = 0;
  #nacked: NackedResponse | undefined;
  /** Whether the one before the last was refused. */
  #wasBad = false;
  #responses = 0;
  #acks = 0;
  #nacks = 0;
  #staleRequests = 0;

  get last(): LastResponse {
    return this.#last;
  }

  /** Whether the last that was answered was refused. */
  get isRefused(): boolean {
    return this.#last === "refused" || (this.#last === "open" && this.#wasBad);
  }

  /** The client's words about the last that it refused. */
  get reason(): string | undefined {
    return this.#nacked?.message;
  }

  /** Empty before the first. */
  get nonce(): string {
    return this.#sent?.nonce ?? "";
  }

  /** When the next one goes, whatever becomes of the last; Infinity if at once. */
  get dueMs(): number {
    return this.#last === "open" ? this.#sent!.atMs + ANSWER_WAIT_MS : Infinity;
  }

  /** Whether the next one waits for an answer to the last. */
  isWaiting(nowMs: number): boolean {
    return this.#last === "open" && nowMs < this.dueMs;
  }

  isSlow(nowMs: number): boolean {
    return this.#last === "open" && nowMs >= this.#sent!.atMs + SLOW_AFTER_MS;
  }

  noteSent(version: string, nonce: string, nowMs: number): void {
    this.#wasBad = this.isRefused;
    this.#sent = { version, nonce, atMs: nowMs };
    this.#last = "open";
    this.#responses++;
  }

  noteAcked(nowMs: number): void {
    this.#last = "taken";
    this.#acks++;
    this.#acked = this.#sent;
    this.#ackedMs = nowMs;
  }

  /** Nothing is refused any more. */
  forgetRefusal(): void {
    this.#nacked = undefined;
  }

  /** @param blamed What is bad, as far as the client says so; else all of it. */
  noteNacked(
    { code, message }: ErrorDetail,
    blamed: readonly Resource[],
    nowMs: number,
  ): void {
    this.#last = "refused";
    this.#nacks++;
    const { version, nonce } = this.#sent!;
    this.#nacked = {
      version,
      nonce,
      atMs: nowMs,
      code,
      message: message.slice(0, NACK_MESSAGE_MAX),
      names: blamed.map(({ name }) => name.slice(0, NAME_LENGTH_MAX)),
    };
  }

  noteStale(): void {
    this.#staleRequests++;
  }

  /** For people. */
  get status(): LoggedStatus {
    const isOpen = this.#last === "open";
    return {
      sent: this.#sent,
      acked: this.#acked && { ...this.#acked, atMs: this.#ackedMs },
      nacked: this.#nacked,
      inFlightSinceMs: isOpen ? this.#sent!.atMs : undefined,
      responses: this.#responses,
      acks: this.#acks,
      nacks: this.#nacks,
      staleRequests: this.#staleRequests,
    };
  }
}
