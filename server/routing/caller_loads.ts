/**
 * How many dials and conduits there are of each caller of which none may have too
 * many: nodes, and other servers.
 *
 * @module
 */

import type {
  BegunDial,
  DialWitness,
} from "../../platform/conduits/dial_reports.ts";
import type { ConnectionFacts } from "../../platform/log/connection_log.ts";
import type { DialAnswer } from "../../proto/link/dial_handler.ts";
import type { PacketObserver, PendingDial } from "../../proto/link/link.ts";
import { Tally } from "../../proto/sync/tally.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { Caller } from "../policy/caller.ts";
import type { CallerDial } from "./dialer.ts";

/** What every frontend needs that serves callers by `/ProxyService/Proxy`. */
export interface CallerTools {
  readonly timers: Timers;
  readonly observer: PacketObserver;
  readonly messageBytesMax: number;
  dial(request: CallerDial, answer: DialAnswer): PendingDial;
}

/** And one whose callers may not have too many dials and conduits. */
export interface LimitedTools extends CallerTools {
  readonly loads: CallerLoads;
  /** Carries the bytes between the two until both are closed; see `DialReports`. */
  join(caller: Conduit, target: Conduit, over?: () => void): void;
}

/** What a caller is counted as; absent: it may have any number. */
export function countedAs(
  { node, forwardedBy }: Pick<Caller, "node" | "forwardedBy">,
): string | undefined {
  if (forwardedBy !== undefined) return `server ${forwardedBy}`;
  return node === undefined ? undefined : `node ${node}`;
}

/** See the module description. */
export class CallerLoads implements DialWitness {
  readonly #loads = new Tally<string>();

  of(caller: Pick<Caller, "node" | "forwardedBy">): number {
    return this.#loads.of(countedAs(caller) ?? "");
  }

  began({ countedAs }: Pick<BegunDial, "countedAs">): void {
    this.#add(countedAs, 1);
  }

  over({ countedAs }: Pick<BegunDial, "countedAs">): void {
    this.#add(countedAs, -1);
  }

  joined({ countedAs }: ConnectionFacts): void {
    this.#add(countedAs, 1);
  }

  closed({ countedAs }: ConnectionFacts): void {
    this.#add(countedAs, -1);
  }

  #add(caller: string | undefined, change: 1 | -1): void {
    if (caller !== undefined) this.#loads.add(caller, change);
  }
}
