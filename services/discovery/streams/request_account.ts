/**
 * What the requests of one stream cost its quota: bytes that the server keeps of
 * them, and time to read them. While the quota has no time left, the client gets
 * no new window, so its requests wait at its own end.
 *
 * @module
 */

import type { ServerCall } from "../../../proto/grpc/call.ts";
import { NODE_BYTES_MAX } from "../../../proto/xds/node_codec.ts";
import { type Quota, RESUMED_WORK_MS } from "../access/quota.ts";

/** Bytes that are kept of a decoded node for each of its bytes, at most. */
const NODE_GROWTH = 4;

/** See the module description. */
export class RequestAccount {
  /** Bytes that are kept of requests, as the quota counts them. */
  #keptBytes = 0;
  /** Of the client's node. */
  #nodeBytes = 0;
  /** Bytes that were read, and give the client no new window yet. */
  #withheldBytes = 0;

  constructor(
    private readonly quota: Quota,
    private readonly call: ServerCall,
  ) {
    quota.enter();
  }

  /** Counts the first message, which carries the node. */
  noteNode(messageBytes: number): void {
    this.#nodeBytes = NODE_GROWTH * Math.min(messageBytes, NODE_BYTES_MAX);
  }

  /**
   * So many bytes are kept now, beside the node.
   *
   * @throws {GrpcError} RESOURCE_EXHAUSTED when the quota is used up.
   */
  keep(bytes: number): void {
    const kept = bytes + this.#nodeBytes;
    const more = kept - this.#keptBytes;
    this.#keptBytes = kept;
    if (more !== 0) this.quota.keep(more);
  }

  /** Reading and answering took so long. */
  worked(tookMs: number): void {
    this.quota.worked(tookMs);
  }

  /** Bytes were read: the client gets new window now, or later. */
  consumed(bytes: number): void {
    if (this.quota.mayGoOn) this.call.consumed(bytes);
    else this.#withheldBytes += bytes;
  }

  /** The quota may have time again: its streams go on one after another. */
  resume(): void {
    if (this.#withheldBytes === 0 || !this.quota.mayGoOn) return;
    this.quota.worked(RESUMED_WORK_MS);
    const bytes = this.#withheldBytes;
    this.#withheldBytes = 0;
    this.call.consumed(bytes);
  }

  /** The stream is over. */
  close(): void {
    this.quota.keep(-this.#keptBytes);
    this.quota.leave();
  }
}

/**
 * A client is given up after this time without reading a byte of a response.
 */
export const STALLED_MS = 60_000;

/** A response that is read byte by byte is given up after this. */
export const RESPONSE_MS_MAX = 600_000;

/**
 * The response that a client has not read, and when the client is given up:
 * nothing else is made for it meanwhile.
 */
export class UnreadResponse {
  #bytes = 0;
  /** Since when it is that much. */
  #sinceMs = 0;
  #sentMs = 0;

  /** @param bytes What the client did not read at once. */
  sent(bytes: number, nowMs: number): void {
    this.#bytes = bytes;
    this.#sinceMs = nowMs;
    this.#sentMs = nowMs;
  }

  /**
   * Compares with the bytes that are unread now.
   *
   * @returns Why the client is given up, if it is.
   */
  look(bytes: number, nowMs: number): string | undefined {
    if (nowMs - this.#sentMs >= RESPONSE_MS_MAX) {
      return `The client did not take a whole response in ${
        RESPONSE_MS_MAX / 1_000
      } s; connect again to get everything`;
    }
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#sinceMs = nowMs;
      return undefined;
    }
    if (nowMs - this.#sinceMs < STALLED_MS) return undefined;
    return `The client took nothing of a response for ${
      STALLED_MS / 1_000
    } s; connect again to get everything`;
  }
}
