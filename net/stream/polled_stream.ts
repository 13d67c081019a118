/**
 * What can be read and written at once, without waiting: a socket of the C
 * library, or TLS over one.
 *
 * @module
 */

import type { PeerCredentials } from "./byte_socket.ts";
import type { Poller } from "../poll/poller.ts";

/** See the module description. */
export interface PolledStream {
  readonly number: number;
  readonly poller: Poller;
  readonly isTcp: boolean;
  readonly isOpen: boolean;
  /** `close` alone ends our side in order; see `ByteSocket`. */
  readonly closesInOrder: boolean;

  /** Who made a unix connection (unix(7)), where that is told. */
  peerCredentials(): PeerCredentials | undefined;

  /**
   * To be told what the poller says.
   *
   * @param ready Bits of `Ready`.
   */
  noticed(ready: number): void;

  /**
   * Reads what is there.
   *
   * @param into Must not be empty.
   * @returns How many bytes, 0 at the peer's end, or `WOULD_BLOCK`.
   * @throws A system error or one of TLS, with its `code`.
   */
  read(into: Uint8Array<ArrayBuffer>): number;

  /**
   * Writes what there is room for.
   *
   * @returns How many bytes were taken; 0 when there is no room.
   * @throws As `read`.
   */
  write(bytes: Uint8Array<ArrayBuffer>): number;

  /** @returns Whether all that was taken is the kernel's. @throws As `write`. */
  flush(): boolean;

  /** Ends our side in order. @throws A system error with its `code`. */
  closeWrite(): void;

  /** Frees it. What the kernel has still leaves. Harmless a second time. */
  close(): void;

  /** Frees it so that the peer sees a failure, where that is possible. */
  reset(): void;
}
