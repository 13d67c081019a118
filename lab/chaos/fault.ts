/**
 * What a fault is: how it begins, how it ends, and what it may cost. All else is
 * a failure.
 *
 * @module
 */

import type { Prng } from "../../tests/support/memory/prng.ts";
import type { Protocol } from "./entrance.ts";
import type { Path } from "./ledger.ts";
import type { Stage } from "./stage.ts";

/** What callers may feel; what is not said may not happen. */
export interface Allowance {
  /** Whether a conduit over this path may break. None may when left out. */
  readonly mayBreak?: (path: Path) => boolean;
  /**
   * Conduits may end in order: the kernel says so for a target that was killed
   * while it had nothing left to read.
   */
  readonly mayEnd?: boolean;
  /**
   * Whether nothing may move on this path for as long as the fault lasts. For
   * all others {@linkcode stallMs} counts.
   */
  readonly mayStand?: (path: Path) => boolean;
  /** Targets to which dials may fail, for want of any other way. */
  readonly mayFail?: readonly string[];
  /** Entrances by which dials may fail. */
  readonly mayFailBy?: readonly Protocol[];
  /**
   * Entrances whose dials may fail and wait that were under way as it began: what
   * was said first may have been heard by then.
   */
  readonly underWay?: readonly Protocol[];
  /** Targets to which, and entrances by which, dials may wait. */
  readonly mayWait?: readonly string[];
  readonly mayWaitBy?: readonly Protocol[];
  /** The longest standstill of a conduit whose path lives. */
  readonly stallMs?: number;
  /** The longest dial to targets that have another way. */
  readonly dialMs?: number;
  /** From the end of the fault until all is well. */
  readonly backMs?: number;
  /**
   * Where the program falls short today of what is promised, in one sentence.
   * The allowance says what is; the report shows the sentence.
   */
  readonly missed?: string;
}

/** One fault that has been chosen: whom it hits is settled. */
export interface Fault {
  /** With whom it hits, such as "kill -9 of server s2". */
  readonly name: string;
  /** From `apply` to `undo`. */
  readonly lastsMs: number;
  readonly allows: Allowance;
  /** Programs and machines that it hits: two faults do not hit the same. */
  readonly hits?: readonly string[];
  /** The agent that serves nobody meanwhile, where another one still does. */
  readonly fells?: string;
  apply(): Promise<void>;
  undo(): Promise<void>;
  /**
   * What else has to hold while it lasts, looked at before `undo`.
   *
   * @throws {Error} That says what does not.
   */
  check?(): Promise<void>;
}

/** Chooses whom a fault hits. @returns Why it cannot be had here, as text. */
export type FaultMaker = (stage: Stage, prng: Prng) => Fault | string;

/** Faults of one kind, by their short names. */
export type FaultFamily = Readonly<Record<string, FaultMaker>>;

/** What everything costs unless a fault says otherwise. */
export const USUAL = {
  stallMs: 2_000,
  // A caller that was connected in the moment of a fault gives that up after 3 s;
  // where its next server picks what stands still, a second later another is asked.
  dialMs: 4_500,
  backMs: 10_000,
} as const;

/** Whether a path leads over this server; who chose one itself may have it. */
export function overServer(server: string): (path: Path) => boolean {
  return (path) => (path.server ?? server) === server;
}

/** Whether a path leads over this agent. */
export function overAgent(agent: string): (path: Path) => boolean {
  return (path) => path.agent === agent;
}

/** Whether a path leads over this server to this agent. */
export function overLink(
  server: string,
  agent: string,
): (path: Path) => boolean {
  const isServer = overServer(server);
  const isAgent = overAgent(agent);
  return (path) => isServer(path) && isAgent(path);
}
