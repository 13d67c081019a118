/**
 * The last response of one kind, its answer, and counts of both.
 *
 * @module
 */

import type { ErrorDetail } from "../../../proto/xds/discovery.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import { RESOURCE_NAME_LENGTH_MAX } from "./name_set.ts";
import { NACK_MESSAGE_MAX } from "./nacked.ts";
import type {
  KindStatus,
  NackedResponse,
  StampedResponse,
} from "./stream_status.ts";

/** After so long without an answer the next response is sent. */
export const ANSWER_WAIT_MS = 10_000;

/**
 * A client that does not answer for so long is slow. The state that it was sent
 * is then freed, and with it the knowledge of what came and went.
 */
export const SLOW_AFTER_MS = 1_000;

/**
 * - `none`: nothing was sent yet.
 * - `open`: it is not answered yet.
 * - `acked`, `nacked`: its answer.
 */
export type LastResponse = "none" | "open" | "acked" | "nacked";

/** The part of a kind's status that is kept here. */
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

/** See the module description; of one kind on one stream. */
export class ResponseLog {
  #last: LastResponse = "none";
  #sent: StampedResponse | undefined;
  #acked: StampedResponse | undefined;
  #ackedMs = 0;
  #nacked: NackedResponse | undefined;
  /** Whether the response before the last was refused. */
  #wasNacked = false;
  #responses = 0;
  #acks = 0;
  #nacks = 0;
  #staleRequests = 0;

  get last(): LastResponse {
    return this.#last;
  }

  /** Whether the last answer was a NACK. */
  get isRefused(): boolean {
    return this.#last === "nacked" ||
      (this.#last === "open" && this.#wasNacked);
  }

  /** The client's message in the last NACK. */
  get reason(): string | undefined {
    return this.#nacked?.message;
  }

  /** Of the last response; empty before the first. */
  get nonce(): string {
    return this.#sent?.nonce ?? "";
  }

  /** When the next response is sent even without an answer; else Infinity. */
  get dueMs(): number {
    return this.#last === "open" ? this.#sent!.atMs + ANSWER_WAIT_MS : Infinity;
  }

  /** Whether the next response waits for an answer to the last. */
  isWaiting(nowMs: number): boolean {
    return this.#last === "open" && nowMs < this.dueMs;
  }

  isSlow(nowMs: number): boolean {
    return this.#last === "open" && nowMs >= this.#sent!.atMs + SLOW_AFTER_MS;
  }

  noteSent(version: string, nonce: string, nowMs: number): void {
    this.#wasNacked = this.isRefused;
    this.#sent = { version, nonce, atMs: nowMs };
    this.#last = "open";
    this.#responses++;
  }

  noteAcked(nowMs: number): void {
    this.#last = "acked";
    this.#acks++;
    this.#acked = this.#sent;
    this.#ackedMs = nowMs;
  }

  /** The client refuses nothing any more. */
  forgetRefusal(): void {
    this.#nacked = undefined;
  }

  /** @param blamed The resources that the NACK names; else all of them. */
  noteNacked(
    { code, message }: ErrorDetail,
    blamed: readonly Resource[],
    nowMs: number,
  ): void {
    this.#last = "nacked";
    this.#nacks++;
    const { version, nonce } = this.#sent!;
    this.#nacked = {
      version,
      nonce,
      atMs: nowMs,
      code,
      message: message.slice(0, NACK_MESSAGE_MAX),
      names: blamed.map(({ name }) => name.slice(0, RESOURCE_NAME_LENGTH_MAX)),
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
