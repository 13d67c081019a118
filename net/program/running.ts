/**
 * A program that runs: how it is asked to end, to read its files again, and to
 * make room for a process that takes its place.
 *
 * @module
 */

import type { HandoverFields } from "../handover/packet_socket.ts";

/** One that is up. */
export interface Running {
  /** Settles when everything is closed. */
  readonly finished: Promise<void>;
  /**
   * Ends when idle or at its timeout; callers that come meanwhile are served.
   *
   * @param why Such as `SIGTERM`.
   */
  shutdown(why?: string): void;
  /** Ends at once. */
  stop(reason: string): void;
  /** Reads its files again; what runs is not disturbed. */
  reload(): void;
}

/** One whose place a new process can take. */
export interface Replaceable extends Running {
  /**
   * Settles when it can serve every caller, or when it ends.
   *
   * @param peers How many the previous process was linked to: agents, or servers.
   * @param isServed That one serves until then.
   */
  whenReady(peers: number, isServed?: boolean): Promise<void>;
  /** It ends anyway, so a successor need not insist. */
  readonly isDraining: boolean;
  /** Sockets that it takes before it is ready: their callers make it ready. */
  readonly early?: readonly string[];
  /**
   * Sockets on which it should not accept before it is ready, where no other
   * process accepts instead.
   */
  readonly late?: readonly string[];
  /**
   * Asked to end, it is not idle before so many ms have passed: a successor may
   * come, or gets ready. Another call counts instead; 0: none is awaited.
   */
  awaitSuccessor(ms: number): void;
  /** A successor accepts on these of our sockets, and waits until it is ready. */
  handedOverEarly?(pid: number): void;
  /** How many agents are linked; of several processes: when they were asked. */
  readonly agents?: number;
  /** Asks those who know that, for a while. */
  askForAgents?(): Promise<void>;
  /** It serves alone: the process whose place it takes serves no more. */
  tookOver?(): void;
  /** A successor has all sockets: it ends when its connections have ended. */
  handedOver(pid: number): void;
  /** What a successor goes on with, in packets: the places of its clients. */
  readonly memory?: Iterable<HandoverFields>;
  /** A packet of it, which may be any. */
  recall?(part: HandoverFields): void;
  /** That process is gone: no process reads what still has the old sockets. */
  successorEnded?(): void;
}
