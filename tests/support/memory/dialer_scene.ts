/**
 * A dialer of a server, whose agents say what a test tells them to.
 *
 * @module
 */

import { DialReports } from "../../../platform/conduits/dial_reports.ts";
import type { LiveConduits } from "../../../platform/conduits/live_conduits.ts";
import type { PendingDial } from "../../../proto/link/link.ts";
import type { DialError } from "../../../proto/peer/dial_error.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import {
  type CallerDial,
  Dialer,
  type DialerOptions,
} from "../../../server/routing/dialer.ts";
import { Registry } from "../../../server/routing/registry.ts";
import { socketCaller } from "./fake_caller.ts";
import { FakeLink } from "./fake_link.ts";
import { FakeTimers } from "./fake_timers.ts";

export const TARGET = { protocol: "tcp", address: "10.0.0.7:5432" };

/** See the module description. */
export class DialerScene {
  readonly timers = new FakeTimers();
  readonly registry = new Registry({
    strategies: ["default"],
    clock: this.timers,
    random: () => 0,
  });
  /** What the observer and the caller received, in order. */
  readonly events: string[] = [];
  /** What is counted, with how dials pass servers. */
  readonly counted: string[] = [];
  readonly dialer: Dialer;
  conduit: Conduit | undefined;
  error: DialError | undefined;
  /** What callers said that went ahead. */
  taken = "";

  constructor(options: Partial<DialerOptions> = {}, conduits?: LiveConduits) {
    const { events, counted } = this;
    this.dialer = new Dialer({
      registry: this.registry,
      timers: this.timers,
      dialTimeoutMs: 10_000,
      reports: new DialReports(conduits, {
        began: () => events.push("started"),
        over: () => events.push("ended"),
        failed(_problem, { path, earlyBytes = 0 }, _facts, cause) {
          const after = earlyBytes === 0 ? "" : ` after ${earlyBytes} bytes`;
          events.push(`counted ${cause}${after}`);
          counted.push(`${cause} ${path}`);
        },
        connected({ askedMs, path }, _inner, { openedMs }) {
          events.push(`connected after ${openedMs - askedMs}`);
          counted.push(`connected ${path}`);
          return {
            received: (bytes) => events.push(`received ${bytes}`),
            sent: (bytes) => events.push(`sent ${bytes}`),
            ended: ({ kind }) => events.push(`over ${kind}`),
          };
        },
      }),
      ...options,
    });
  }

  link(agentId = "agent-a"): FakeLink {
    const link = new FakeLink(agentId, {}, this.timers);
    link.lastHeardMs = this.timers.now();
    this.registry.add(link);
    return link;
  }

  /** Dials that agents were asked for. */
  asked(): number {
    return [...this.registry.links]
      .reduce((sum, link) => sum + (link as FakeLink).dials.length, 0);
  }

  /** Whom the first dial went to. */
  firstAsked(links: readonly FakeLink[]): FakeLink {
    const [first] = links.filter(({ dials }) => dials.length > 0)
      .sort((one, other) => one.dials[0]!.turn - other.dials[0]!.turn);
    return first!;
  }

  dial(
    early = "",
    node?: string,
    more: Partial<CallerDial> = {},
  ): PendingDial {
    return this.dialer.dial({
      target: TARGET,
      node,
      caller: socketCaller(),
      ...more,
      takeEarlyData: () => {
        this.taken += early;
        return new TextEncoder().encode(early);
      },
    }, {
      connected: (conduit) => {
        this.conduit = conduit;
        this.events.push("answered");
      },
      failed: (error) => {
        this.error = error;
        this.events.push(`failed ${error.reason}`);
      },
    });
  }
}
