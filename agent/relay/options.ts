/**
 * What a node passes on for programs on it that cannot show who they are.
 *
 * @module
 */

import type { ListenAddress } from "../../net/listen/listeners.ts";

/** Addresses of loopback: who is let in is said by nothing else. */
export interface RelayOptions {
  /** Where discovery is asked; absent: nowhere. */
  readonly xds?: ListenAddress;
  /** Where connections are asked for, by HTTP CONNECT; absent: nowhere. */
  readonly connect?: ListenAddress;
}
