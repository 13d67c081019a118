/**
 * The ids that this process makes for connections that come without one.
 *
 * @module
 */

import {
  type ConnectionId,
  ConnectionIds,
} from "../../proto/peer/connection_id.ts";

const ids = new ConnectionIds((bytes) => crypto.getRandomValues(bytes));

/** A fresh id; a call to the system for one of 64. */
export function newConnectionId(): ConnectionId {
  return ids.next();
}
