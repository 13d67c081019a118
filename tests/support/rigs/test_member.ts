/**
 * Servers that meet in a store, each as its membership alone, and what holds for
 * all stores.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { MetricRegistry } from "../../../platform/metrics/metrics.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { NO_IDENTIFIERS } from "../../../proto/peer/identifiers.ts";
import { ANONYMOUS } from "../../../proto/peer/peer_identity.ts";
import type { LinkPeer } from "../../../proto/link/link.ts";
import { eventually } from "./tunnel_harness.ts";
import type { Ephemerals } from "../../../neighbours/store/ephemerals.ts";
import { Membership } from "../../../server/peers/membership.ts";

/** The machine may be busy. */
const SEEN_MS = 30_000;

/** Short, so that a crash is seen within a case. */
export const TIMEOUT_MS = 4_000;

/** Opens the way of one server to the store. */
export type OpenMember = (
  who: { readonly serverId: string; readonly instanceId: string },
) => { readonly ephemerals: Ephemerals; cut(): void };

/** One server's view of the others. */
export class TestMember implements AsyncDisposable {
  readonly membership: Membership;
  readonly said: string[] = [];
  readonly #way: ReturnType<OpenMember>;

  constructor(open: OpenMember, readonly serverId: string) {
    const instanceId = crypto.randomUUID().replaceAll("-", "");
    this.#way = open({ serverId, instanceId });
    this.membership = new Membership({
      serverId,
      instanceId,
      software: "tunnel/test",
      serverCount: 1,
      fixed: [],
      strategies: ["destHost"],
      timers: systemTimers,
      wallClock: Date.now,
      metrics: new MetricRegistry(),
      warn: (line) => this.said.push(line),
      event: (line) => {
        if (!line.startsWith("server ")) this.said.push(line);
      },
    });
    this.membership.start({
      address: `${serverId}.example:8091`,
      ephemerals: this.#way.ephemerals,
      authorities: () => [],
      onAnnouncement: () => {},
    });
  }

  /** The others, in order. */
  get others(): string {
    return this.membership.all.map(({ serverId }) => serverId).sort().join();
  }

  async sees(others: string, timeoutMs = SEEN_MS): Promise<void> {
    await eventually(
      `${this.serverId} sees ${others}; it sees ${this.others}; ${this.said}`,
      () => this.others === others,
      timeoutMs,
    );
  }

  async finds(node: string, servers: string): Promise<void> {
    const target = { protocol: "tcp", address: "x:1" } as const;
    const found = () =>
      this.membership.find(target, node).map(({ serverId }) => serverId).sort()
        .join();
    await eventually(
      `${this.serverId} finds ${node} at ${servers}`,
      () => found() === servers,
    );
  }

  /** It says nothing any more, as after a `kill -9`. */
  crash(): void {
    this.#way.cut();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.membership.stop();
    this.#way.cut();
  }
}

export function linkOf(agentId: string): LinkPeer {
  return {
    agentId,
    identifiers: { ...NO_IDENTIFIERS, host: [agentId] },
    identity: ANONYMOUS,
    remoteAddress: "10.0.0.1:1",
    carrier: "streams",
    software: "tunnel/test",
  };
}

/** Servers come, have agents, end and crash. */
export async function membersMeet(open: OpenMember): Promise<void> {
  await using one = new TestMember(open, "one");
  await using two = new TestMember(open, "two");
  await one.sees("two");
  await two.sees("one");
  for (let at = 0; at < 500; at++) two.membership.linked(linkOf(`edge-${at}`));
  await one.finds("edge-0", "two");
  await one.finds("edge-499", "two");
  await one.finds("edge-500", "");
  two.membership.unlinked(linkOf("edge-499"));
  await one.finds("edge-499", "");

  // A clean end is seen at once, though the store is asked on.
  const three = new TestMember(open, "three");
  await one.sees("three,two");
  assertEquals(one.membership.serverCount, 3);
  three.membership.retire();
  await one.sees("two", 2_000);
  await two.sees("one", 2_000);
  await three[Symbol.asyncDispose]();

  // One that dies is gone a while later, and its agents with it.
  two.crash();
  const crashedMs = Date.now();
  await one.sees("", 3 * TIMEOUT_MS);
  const tookMs = Date.now() - crashedMs;
  assert(tookMs >= TIMEOUT_MS / 3, `gone after ${tookMs} ms, too soon`);
  await one.finds("edge-0", "");
}
