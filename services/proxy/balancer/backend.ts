/**
 * One target of a service's port, and what has been learned about it.
 *
 * It lives from the first update of the catalog that names its address until
 * one that does not, whatever else changes about it in between, so that counts
 * and what was found of it survive updates. Connections that go on hold it longer.
 *
 * @module
 */

import { networkOf } from "../../catalog/model/model.ts";
import type { Target } from "../../catalog/snapshot.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { type Family, familyOf } from "./families.ts";

/** What a health check has found. */
export type Health = "unknown" | "well" | "ill";

export class Backend {
  /** What tells it from the others of its unit; see {@linkcode backendKeyOf}. */
  readonly key: string;
  /** Of its address, where that is dialed from here and is neither name nor near. */
  readonly family: Family | undefined;
  /** As the catalog has it now. */
  target: Target;
  /** May get new connections, going by what the catalog says of it. */
  isUsable = false;

  /** Open connections, or UDP sessions; dials count from their beginning. */
  connections = 0;
  /** Dials that succeeded, ever. */
  connectionsTotal = 0;
  /** Dials that failed, ever. */
  failuresTotal = 0;
  bytesSent = 0;
  bytesReceived = 0;

  /** Dials that failed since the last one that did not. */
  failures = 0;
  /** Not chosen before this time, if there is another. */
  ejectedUntilMs = -Infinity;
  health: Health = "unknown";
  /** What went wrong last, of a dial or a health check. */
  lastError: string | undefined;

  constructor(target: Target) {
    this.target = target;
    this.key = backendKeyOf(target);
    this.family = target.endpoint.via.kind === "direct"
      ? familyOf(target.address)
      : undefined;
  }

  /** A dial to it begins, and so may a connection or a session. */
  opened(): void {
    this.connections++;
  }

  /** One that began has ended. */
  closed(): void {
    this.connections--;
  }
}

/** `host:port`, and behind an agent that is named also which, `@id=edge-1`. */
export function backendKeyOf({ address, port, endpoint }: Target): string {
  return `${hostPort(address, port)}${networkOf(endpoint)}`;
}
