/**
 * An `AgentLink` whose every property a test can set by hand.
 *
 * @module
 */

import type { DialTarget } from "../../../proto/peer/dial_error.ts";
import type { Identifiers } from "../../../proto/peer/identifiers.ts";
import type { Clock } from "../../../proto/sync/clock.ts";
import type {
  AgentLink,
  DialEvents,
  LinkDialOptions,
  PendingDial,
} from "../../../proto/link/link.ts";

/** Identifiers with nothing announced but what is given. */
export function identifiers(given: Partial<Identifiers> = {}): Identifiers {
  return {
    host: [],
    ipv4: [],
    ipv6: [],
    cidr: [],
    uid: [],
    defaultRoute: false,
    ...given,
  };
}

/** A connection on which nothing happens, for a link of the packets carrier. */
export const QUIET_CONNECTION = {
  lastHeardMs: 0,
  askedMs: undefined,
  bulkStreams: 0,
  roundTripMs: undefined,
  checkLiveness: () => {},
  whenAlive: () => {},
} as const;

let turns = 0;

/** See the module description. */
export class FakeLink implements AgentLink {
  readonly peer;
  isDraining = false;
  lastHeardMs = 0;
  askedMs: number | undefined;
  /** What is sent early leaves at once. */
  isProven = true;
  /** What waits for `heard`. */
  readonly #awaiting: (() => void)[] = [];
  load = 0;
  ending = 0;
  bulkConduits = 0;
  roundTripMs: number | undefined;
  /** Whether a dial under way takes early data. */
  takesEarly = false;
  /** How often it was asked for a sign of life. */
  asked = 0;
  closed: string | undefined;
  /** Dials that were asked for, oldest first. */
  readonly dials: {
    target: DialTarget;
    events: DialEvents;
    cancelled: boolean;
    earlyData: Uint8Array | undefined;
    id: string | undefined;
    /** Before which others it was asked for, of all links. */
    turn: number;
  }[] = [];

  /** @param clock Absent: it does not matter when it is asked. */
  constructor(
    agentId: string,
    given: Partial<Identifiers> = {},
    readonly clock?: Clock,
  ) {
    this.peer = {
      agentId,
      identifiers: identifiers(given),
      identity: {
        kind: "anonymous" as const,
        commonName: "",
        fingerprint: "",
        names: [],
      },
      remoteAddress: "10.0.0.7:4711",
      carrier: "streams" as const,
      software: "test",
    };
  }

  dial(
    target: DialTarget,
    events: DialEvents,
    { earlyData, id }: LinkDialOptions = {},
  ): PendingDial {
    const turn = turns++;
    const dial = { target, events, cancelled: false, earlyData, id, turn };
    this.dials.push(dial);
    return {
      cancel: () => void (dial.cancelled = true),
      ...(this.takesEarly
        ? { sendEarly: (bytes: Uint8Array) => this.#take(dial, bytes) }
        : {}),
    };
  }

  #take(dial: { earlyData: Uint8Array | undefined }, bytes: Uint8Array) {
    const before = dial.earlyData ?? new Uint8Array();
    dial.earlyData = new Uint8Array([...before, ...bytes]);
    return bytes.length;
  }

  /** Something came from the agent. */
  heard(nowMs: number): void {
    this.lastHeardMs = nowMs;
    this.askedMs = undefined;
    for (const then of this.#awaiting.splice(0)) then();
  }

  whenAlive(then: () => void): void {
    if (this.isProven) return then();
    if (this.askedMs === undefined) this.checkLiveness();
    this.#awaiting.push(then);
  }

  checkLiveness(): void {
    this.asked++;
    this.askedMs ??= this.clock?.now();
  }

  close(reason: string): void {
    this.closed = reason;
  }
}
