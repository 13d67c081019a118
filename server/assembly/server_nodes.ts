/**
 * What a server offers nodes beside their links: discovery of services,
 * announcements of their own services, and connections to other nodes.
 *
 * Connections work with and without a catalog; a virtual address has a meaning
 * only on a server with the same catalog.
 *
 * @module
 */

import { PEER_TIMEOUT_MS } from "../../neighbours/store/ephemerals.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import { announcedName } from "../../proto/link/control_messages.ts";
import type {
  AgentLink,
  LinkAuthorization,
  LinkCandidate,
} from "../../proto/link/link.ts";
import type { SubscriberLink } from "../../services/discovery/streams/open_streams.ts";
import { VirtualAddresses } from "../../services/discovery/generate/virtual_addresses.ts";
import type {
  ServerDiscovery,
  ServerDiscoveryEnvironment,
} from "../discovery/server_discovery.ts";
import { type NodeCalls, NodeFrontend } from "../frontends/node_frontend.ts";
import type { ConnectionPeer } from "../links/agent_port.ts";
import type { Store } from "../../neighbours/store/store.ts";
import { CatalogReach } from "../policy/catalog_reach.ts";
import type { ServerCore } from "./server_core.ts";

/** Discovery, announcements and dials of nodes. */
export class ServerNodes {
  readonly #virtualAddresses: VirtualAddresses;
  readonly #frontend: NodeFrontend;
  #discovery: ServerDiscovery | undefined;

  /** @param admit Whether a peer may be an agent. */
  constructor(
    private readonly core: ServerCore,
    private readonly admit: (candidate: LinkCandidate) => LinkAuthorization,
  ) {
    this.#virtualAddresses = new VirtualAddresses(core.program.timers);
    const { nodeConnections } = core.metrics.ours;
    this.#frontend = new NodeFrontend({
      ...core.callerTools("node"),
      admit,
      resolve: (host) => this.#virtualAddresses.resolve(host),
      refused: (from, reason) => core.callerRefused(`${from}: ${reason}`),
      counted: (change) => nodeConnections.add(change),
    });
  }

  /**
   * @param records What servers have in common, if there is such a thing.
   * @throws {ListenError}
   */
  async openDiscovery(
    records: Store | undefined,
  ): Promise<ServerDiscovery | undefined> {
    const core = this.core;
    const { options, authorization, program: { log, timers, metrics } } = core;
    if (options.discovery === undefined) return undefined;
    // Loaded when wanted: most servers have no catalog.
    const { ServerDiscovery } = await import(
      "../discovery/server_discovery.ts"
    );
    this.#discovery = new ServerDiscovery(options.discovery, {
      ...{ log, timers, metrics },
      receiveBudget: core.receiveBudget,
      limiter: core.limiter.limiter,
      server: options.serverId,
      admit: this.admit,
      policy: () => authorization.policy,
      letsAnonymous: options.agents.allowAnonymous,
      ...await announcedElsewhere(core, records),
    });
    const { catalog } = this.#discovery;
    catalog.follow((snapshot) => this.#virtualAddresses.update(snapshot));
    authorization.dials.reach = new CatalogReach({
      catalog,
      clock: timers,
      visibleTo: (node) => authorization.policy.visibleTo(node),
    });
    return this.#discovery;
  }

  /** Methods of one connection to the agent port. */
  methods(caller: ConnectionPeer): Readonly<Record<string, MethodHandler>> {
    return {
      ...this.#discovery?.methods({ ...caller, needsNoProof: false }),
      ...this.#frontend.methods(caller),
    };
  }

  /**
   * Connections admitted by certificate, which are authorized again with
   * agents.
   */
  get links(): readonly (SubscriberLink | NodeCalls)[] {
    return [...this.#discovery?.links ?? [], ...this.#frontend.links];
  }

  /** What an agent announces is for the catalog, where there is one. */
  announced(event: "linked" | "changed", link: AgentLink): void {
    const membership = this.#discovery?.membership;
    if (membership !== undefined) return membership[event](link);
    const reason = "this server has no catalog; start it with --discovery";
    const refused = (link.services ?? []).slice(0, 1)
      .map((service) => ({ service: announcedName(service), reason }));
    if (refused.length > 0) link.refuseServices?.(refused);
  }

  /** What an agent has announced goes with its last link. */
  unlinked(link: AgentLink): void {
    this.#discovery?.membership.unlinked(link);
  }

  /**
   * The policy may have changed, or the record of a node.
   *
   * @param node The only node whose record may have changed.
   */
  reconsider(node?: string): void {
    this.#frontend.reconsider();
    this.#discovery?.reconsider();
    // A change of one node's record does not change what it may announce.
    if (node === undefined) this.#discovery?.membership.reconsider();
  }

  /**
   * Sends clients of discovery to other servers. The agent port sends nodes that
   * ask for connections there; those that have no other one are served to the end.
   */
  drain(reason: string): void {
    this.#discovery?.drain(reason);
  }

  /** Settles when the sources of the catalog have ended. */
  async stop(reason: string): Promise<void> {
    await this.#discovery?.stop(reason);
  }
}

/** What agents announced earlier, and what agents of other servers announce. */
async function announcedElsewhere(
  { state, options, instanceId, program: { log, timers } }: ServerCore,
  records: Store | undefined,
): Promise<Pick<ServerDiscoveryEnvironment, "memory" | "peers">> {
  const { MemberRecords, SharedOffers } = await import(
    "../discovery/server_discovery.ts"
  );
  const { serverId, membership } = options;
  // Together with the others when that is cheap, else alone.
  const folder = state?.kind === "directory"
    ? state.root
    : options.agents.identity?.stateDirectory;
  const store = state?.kind === "kubernetes"
    ? records
    : folder && await DirectoryStore.openLocal(folder);
  const kept = store && new MemberRecords(store, serverId, log);
  if (state === undefined) return kept ? { memory: kept } : {};
  const ephemerals = await state.ephemerals("offers", {
    serverId,
    instanceId,
    timeoutMs: membership?.timeoutMs ?? PEER_TIMEOUT_MS,
    timers,
  });
  const offers = new SharedOffers({
    ephemerals,
    serverId,
    instanceId,
    log,
    now: Date.now,
    kept: kept || undefined,
  });
  return { memory: offers, peers: offers };
}
