/**
 * The targets of the catalog's services: a node may dial them without a rule,
 * if it may see the service. Removed targets count for a while, because their
 * clients must receive the removal first.
 *
 * A target is identified as dials ask for it: by address and port, in the
 * network of this agent. Another name of the same agent makes another target,
 * which the catalog does not know.
 *
 * @module
 */

import type { Follower } from "../../services/catalog/catalog.ts";
import { touchedIn } from "../../services/catalog/diff.ts";
import {
  type AgentIdentifier,
  type Endpoint,
  type Protocol,
  type Service,
  type Visibility,
} from "../../services/catalog/model/model.ts";
import type { Snapshot } from "../../services/catalog/snapshot.ts";
import { canonicalAddress } from "../../services/catalog/model/validate.ts";
import { splitAddress } from "../../policy/target_address.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import type { Clock } from "../../proto/sync/clock.ts";

import { RecentlyRemoved } from "../../services/catalog/recently_removed.ts";
import { identifierKey } from "../../proto/peer/normal_form.ts";

/** What `CatalogReach` needs from outside. */
export interface CatalogReachOptions {
  readonly catalog: {
    readonly isSynced: boolean;
    follow(follower: Follower): () => void;
  };
  readonly clock: Clock;
  /** The services that a node may see. */
  visibleTo(node: string): Visibility;
}

/** An index of the catalog by targets. */
export class CatalogReach {
  /** By target: the services that have it. */
  readonly #services = new Map<string, Set<string>>();
  /** By service: its targets, with the keys of the map above. */
  readonly #targets = new Map<string, readonly string[]>();
  /** By target: the service that had it last. */
  readonly #gone: RecentlyRemoved<string>;

  constructor(private readonly options: CatalogReachOptions) {
    this.#gone = new RecentlyRemoved(options.clock);
    options.catalog.follow((snapshot, diff) => {
      for (const key of touchedIn(diff)) this.#index(snapshot, key);
    });
  }

  /** False while services may be missing, as just after the start. */
  get isComplete(): boolean {
    return this.options.catalog.isSynced;
  }

  /**
   * The service that allows `node` to dial `target`.
   *
   * @param agent The agent as the dial names it; absent: any.
   * @returns Its `namespace/name`; `undefined`: there is none.
   */
  serviceOf(
    node: string,
    agent: string | undefined,
    target: DialTarget,
  ): string | undefined {
    const key = keyOfTarget(agent, target);
    if (key === undefined) return undefined;
    const services = this.#services.get(key);
    const gone = this.#gone.get(key);
    if (services === undefined && gone === undefined) return undefined;
    const visible = this.options.visibleTo(node);
    for (const service of services ?? []) {
      if (visible.sees(service)) return service;
    }
    return gone !== undefined && visible.sees(gone) ? gone : undefined;
  }

  #index({ services, endpoints }: Snapshot, key: string): void {
    const before = this.#targets.get(key) ?? [];
    for (const target of before) {
      const having = this.#services.get(target);
      having?.delete(key);
      if (having?.size === 0) this.#services.delete(target);
    }
    const targets = targetsOf(services.get(key), endpoints.get(key) ?? []);
    if (targets.length === 0) this.#targets.delete(key);
    else this.#targets.set(key, targets);
    for (const target of targets) {
      this.#services.getOrInsertComputed(target, () => new Set()).add(key);
    }
    for (const target of before) {
      if (!this.#services.has(target)) this.#gone.add(target, key);
    }
  }
}

/** Each once; also of endpoints that are not ready: health checks ask those. */
function targetsOf(
  service: Service | undefined,
  endpoints: readonly Endpoint[],
): readonly string[] {
  if (service === undefined) return [];
  const protocols = new Map<string, Protocol>(
    service.ports.map(({ name, protocol }) => [name, protocol]),
  );
  const targets = new Set<string>();
  for (const { via, address, ports } of endpoints) {
    const isBehindAgent = via.kind === "agent" ||
      service.policy.agentOnFailure === true;
    if (!isBehindAgent) continue;
    const agent = via.kind === "agent" && via.agent !== undefined
      ? agentKey(via.agent)
      : "";
    for (const { name, port } of ports) {
      const protocol = protocols.get(name);
      if (protocol === undefined) continue;
      targets.add(targetKey(agent, protocol, address, port));
    }
  }
  return [...targets];
}

function keyOfTarget(
  agent: string | undefined,
  target: DialTarget,
): string | undefined {
  const { protocol } = target;
  if (protocol !== "tcp" && protocol !== "udp") return undefined;
  try {
    const { host, port } = splitAddress(target);
    const address = canonicalAddress(host);
    if (address === undefined) return undefined;
    const [, key, value = ""] = /^(uid|cidr|host|id)=(.*)$/.exec(agent ?? "") ??
      [];
    const named = agent === undefined ? "" : agentKey({
      key: (key ?? "host") as AgentIdentifier["key"],
      value: key === undefined ? agent : value,
    });
    return targetKey(named, protocol, address, port);
  } catch (error) {
    if (error instanceof DialError) return undefined;
    throw error;
  }
}

/**
 * Compared as agents are found: their own ids exactly, other identifiers in
 * normal form.
 */
function agentKey({ key, value }: AgentIdentifier): string {
  return `${key}=${identifierKey(key, value)}`;
}

function targetKey(
  agent: string,
  protocol: Protocol,
  address: string,
  port: number,
): string {
  return `${agent} ${protocol} ${address} ${port}`;
}
