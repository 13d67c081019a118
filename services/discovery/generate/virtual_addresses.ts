/**
 * Addresses for endpoints that are behind agents, for programs that can only
 * use addresses: they ask a CONNECT proxy on their node for one, and the server
 * knows which agent and which endpoint it stands for.
 *
 * They are computed from the agent's identifier and the endpoint's address
 * alone, so that every server always uses the same one, and nodes whose own
 * addresses overlap are kept apart. They lie in a prefix for local use that is
 * never routed (RFC 4193): a program that dials one without the proxy reaches
 * nothing.
 *
 * @module
 */

import { createHash } from "node:crypto";
import type { AgentIdentifier, Endpoint } from "../../catalog/model/model.ts";
import { changedKeys } from "../../catalog/model/plain_data.ts";
import { memoized } from "../../catalog/model/memo.ts";
import { EMPTY_SNAPSHOT, type Snapshot } from "../../catalog/snapshot.ts";
import {
  formatIpAddress,
  parseIpAddress,
  parseIpPrefix,
  prefixContains,
} from "../../../proto/peer/ip_address.ts";
import type { Clock } from "../../../proto/sync/clock.ts";
import { RecentlyRemoved } from "../../catalog/recently_removed.ts";

/** `fd`, and `tunnel` in ASCII. */
export const VIRTUAL_PREFIX = "fd74:756e:6e65:6c00::/64";

const PREFIX = parseIpPrefix(VIRTUAL_PREFIX)!;

/** The endpoint behind a virtual address; its port is the same. */
export interface VirtualTarget {
  /** Absent: the server chooses. */
  readonly agent?: AgentIdentifier;
  /** An IP address or a host name, as the agent knows it. */
  readonly address: string;
}

/** The virtual address of an endpoint behind an agent. */
export function virtualAddressOf({ agent, address }: VirtualTarget): string {
  const text = agent === undefined ? "" : `${agent.key}=${agent.value}`;
  const hash = createHash("sha256").update(JSON.stringify([text, address]))
    .digest();
  const bytes = new Uint8Array(16);
  bytes.set(PREFIX.address.subarray(0, 8));
  bytes.set(hash.subarray(0, 8), 8);
  return formatIpAddress(bytes);
}

/** Whether `host` is one, known or not. */
export function isVirtualAddress(host: string): boolean {
  const address = parseIpAddress(host);
  return address !== undefined && prefixContains(PREFIX, address);
}

/**
 * The endpoints behind a catalog's virtual addresses, and for a while those of
 * removed endpoints: clients use them until they receive the removal.
 *
 * After a restart of the server, clients that come with an address from before
 * find it as soon as the catalog is there.
 */
export class VirtualAddresses {
  #snapshot: Snapshot = EMPTY_SNAPSHOT;
  /** By address, with the number of endpoints that use it. */
  readonly #known = new Map<string, { target: VirtualTarget; uses: number }>();
  readonly #gone: RecentlyRemoved<VirtualTarget>;

  constructor(clock: Clock) {
    this.#gone = new RecentlyRemoved(clock);
  }

  /** Takes the present catalog. */
  update(snapshot: Snapshot): void {
    const before = this.#snapshot.endpoints;
    const after = snapshot.endpoints;
    this.#snapshot = snapshot;
    for (const key of changedKeys(before, after)) {
      this.#learn(after.get(key) ?? []);
      this.#forget(before.get(key) ?? []);
    }
  }

  /**
   * The endpoint behind the virtual address `host`.
   *
   * @returns `undefined` when it is no virtual address, or when no endpoint has
   *   it now or had it a moment ago.
   */
  resolve(host: string): VirtualTarget | undefined {
    const address = parseIpAddress(host);
    if (address === undefined || !prefixContains(PREFIX, address)) {
      return undefined;
    }
    const virtual = formatIpAddress(address);
    return this.#known.get(virtual)?.target ?? this.#gone.get(virtual);
  }

  #learn(endpoints: readonly Endpoint[]): void {
    for (const [virtual, target] of behindAgents(endpoints)) {
      const known = this.#known.get(virtual);
      if (known === undefined) this.#known.set(virtual, { target, uses: 1 });
      else known.uses++;
    }
  }

  #forget(endpoints: readonly Endpoint[]): void {
    for (const [virtual, target] of behindAgents(endpoints)) {
      const known = this.#known.get(virtual);
      if (known !== undefined && --known.uses === 0) {
        this.#known.delete(virtual);
        this.#gone.add(virtual, target);
      }
    }
  }
}

type AgentEndpoint = Endpoint & { readonly via: { readonly kind: "agent" } };

function isBehindAgent(endpoint: Endpoint): endpoint is AgentEndpoint {
  return endpoint.via.kind === "agent";
}

/** The endpoint behind it. */
function virtualTargetOf(
  { address, via: { agent } }: AgentEndpoint,
): VirtualTarget {
  return { address, ...agent === undefined ? {} : { agent } };
}

/** Endpoints live long, and lists of them are many. */
const virtualOf = memoized((endpoint: AgentEndpoint) =>
  virtualAddressOf(virtualTargetOf(endpoint))
);

/** The virtual address of an endpoint; `undefined`: it is behind no agent. */
export function virtualAddressOfEndpoint(
  endpoint: Endpoint,
): string | undefined {
  return isBehindAgent(endpoint) ? virtualOf(endpoint) : undefined;
}

function* behindAgents(
  endpoints: readonly Endpoint[],
): Generator<readonly [string, VirtualTarget]> {
  for (const endpoint of endpoints) {
    if (!isBehindAgent(endpoint)) continue;
    yield [virtualOf(endpoint), virtualTargetOf(endpoint)];
  }
}
