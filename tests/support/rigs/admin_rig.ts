/**
 * A server's admin API without a server: links, conduits, records and what was
 * before are what a test says.
 *
 * @module
 */

import type { LinkPeer } from "../../../proto/link/link.ts";
import type { JoinedNodes } from "../../../server/assembly/server_agents.ts";
import { adminApi } from "../../../net/admin/admin_api.ts";
import type { HttpHandler, HttpPeer } from "../../../net/admin/http_port.ts";
import { WatchedFiles } from "../../../net/tls/trust/watched_files.ts";
import { LiveConduits } from "../../../platform/conduits/live_conduits.ts";
import { RecentEvents } from "../../../platform/log/recent_events.ts";
import { MetricRegistry } from "../../../platform/metrics/metrics.ts";
import type { AdminRole } from "../../../proto/admin/api.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { showServer } from "../../../admin/server/show_server.ts";
import { Authorization } from "../../../server/policy/authorization.ts";
import {
  type Authorities,
  createAuthorities,
  loadAuthorities,
} from "../../../server/identity/authorities.ts";
import { NodeBook } from "../../../server/identity/node_book.ts";
import { NodeHistory } from "../../../server/links/node_history.ts";
import type {
  ServerParts,
  ShownServer,
} from "../../../server/assembly/server_admin_port.ts";
import {
  type NodeRecord,
  NodeStore,
} from "../../../server/identity/node_store.ts";
import { Membership } from "../../../server/peers/membership.ts";
import { Registry } from "../../../server/routing/registry.ts";
import { DirectoryStore } from "../../../neighbours/store/directory_store.ts";
import { FakeLink } from "../memory/fake_link.ts";
import { MemoryConduit } from "../memory/memory_conduit.ts";
import { RecordedLog } from "../watch/recorded_log.ts";
import { FakeTimers } from "../memory/fake_timers.ts";
import { inMemoryFolder } from "../memory/memory_folder.ts";

/** What a test answers with. */
export interface Answer {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- whatever the path answers.
  readonly body: any;
}

/** See the module description. */
export class AdminRig {
  readonly registry: Registry;
  readonly conduits: LiveConduits;
  /** How long ago what is noted now has happened. */
  agoMs = 0;
  readonly events = new RecentEvents(() => Date.now() - this.agoMs);
  readonly log = new RecordedLog();
  readonly history: NodeHistory;
  readonly facts: ServerParts;
  readonly admin: ShownServer;
  readonly duplicates = new Map<string, number>();
  readonly drained: string[] = [];
  role: AdminRole = "operate";
  readonly #api: HttpHandler;
  readonly #identity: JoinedNodes & { authorities: Authorities };

  get authorities(): Authorities {
    return this.#identity.authorities;
  }

  set authorities(authorities: Authorities) {
    this.#identity.authorities = authorities;
  }

  private constructor(
    timers: Timers,
    readonly state: DirectoryStore,
    authorities: Authorities,
  ) {
    const { log, events, duplicates } = this;
    this.registry = new Registry({
      strategies: ["destHost"],
      clock: timers,
      random: Math.random,
    });
    this.conduits = new LiveConduits(timers);
    this.history = new NodeHistory({ log, timers });
    const metrics = new MetricRegistry();
    const book = new NodeBook(new NodeStore(state));
    // Agents here are called as their nodes are.
    const nodeOf = ({ agentId }: LinkPeer) => agentId;
    this.#identity = { state, book, authorities, nodeOf };
    this.facts = {
      serverId: "s1",
      ...{ timers, events, registry: this.registry, conduits: this.conduits },
      history: this.history,
      files: new WatchedFiles({ log, timers, metrics, prefix: "test_" }),
      peers: new Membership({
        serverId: "s1",
        instanceId: "0".repeat(32),
        software: "tunnel/test",
        serverCount: 1,
        fixed: [],
        strategies: ["destHost"],
        ...{ timers, metrics, wallClock: Date.now },
        warn() {},
        event() {},
      }),
      identity: this.#identity,
      program: () => ({
        program: "server",
        id: "s1",
        version: "0.0.0",
        pid: 1,
        startedAt: new Date(0).toISOString(),
        now: new Date().toISOString(),
        isReady: true,
        isDraining: false,
        addresses: {},
      }),
      pendingDials: () => this.conduits.dials.size,
      duplicates: () => duplicates,
      discovery: undefined,
      flags: undefined,
      audit: undefined,
      allowsAnonymous: false,
      socket: "",
      problem: () => undefined,
      reachedLimits: () => [],
      drain: ({ peer }) => this.drained.push(peer.agentId) > 0,
    };
    const authorization = new Authorization({}, metrics, undefined);
    this.admin = showServer(this.facts, authorization);
    this.#api = adminApi(this.admin.routes, {
      who: () => ({ role: this.role, name: "alice" }),
    });
  }

  /** @param root An empty directory. */
  static async open(timers: Timers, root: string): Promise<AdminRig> {
    const { state } = await DirectoryStore.openOrCreate(
      root,
      createAuthorities,
    );
    return new AdminRig(timers, state, await loadAuthorities(state));
  }

  /** A node joins. */
  async join(name: string, more: Partial<NodeRecord> = {}): Promise<void> {
    const record: NodeRecord = {
      name,
      state: "approved",
      publicKeySha256: "0".repeat(64),
      identifiers: "",
      joinedAt: "2026-01-02T03:04:05Z",
      tokenId: "t",
      joinedFrom: "10.0.0.7:4711",
      ...more,
    };
    await this.state.transact((change) =>
      new NodeStore(this.state).write(record, change)
    );
    this.facts.identity!.book.changed(name);
  }

  /** Its agent links. */
  link(name: string): FakeLink {
    const link = new FakeLink(name, { host: [name] }, this.facts.timers);
    this.registry.add(link);
    this.history.linked(name, link);
    return link;
  }

  unlink(link: FakeLink, reason: string): void {
    this.registry.remove(link);
    this.history.unlinked(link.peer.agentId, reason);
  }

  /** A conduit over a link. @returns Its far end. */
  connect(id: string, link: FakeLink): MemoryConduit {
    const [far, near] = MemoryConduit.pair();
    const observer = { received() {}, sent() {}, ended() {} };
    const live = this.conduits.open(near, observer, {
      who: "CN=alice",
      from: "10.0.0.1:4000",
      node: link.peer.agentId,
      target: { protocol: "tcp", address: "10.0.0.7:5432" },
    }, { id, askedMs: this.facts.timers.now(), carrier: link });
    live.attach({
      onData: (chunk) => live.consumed(chunk.length),
      onWritable() {},
      onEnd() {},
      onClose() {},
    });
    return far;
  }

  /** Asks as a client does. */
  async ask(
    path: string,
    method: "GET" | "POST" = "GET",
    body?: unknown,
    signal?: AbortSignal,
  ): Promise<Response> {
    const request = new Request(`http://x${path}`, {
      method,
      ...(signal === undefined ? {} : { signal }),
      ...(body === undefined ? {} : {
        body: JSON.stringify(body),
        headers: { "content-type": "application/json" },
      }),
    });
    return await this.#api(request, {} as HttpPeer);
  }

  async get(path: string): Promise<Answer> {
    const response = await this.ask(path);
    return { status: response.status, body: await response.json() };
  }

  async post(path: string, body: unknown = {}): Promise<Answer> {
    const response = await this.ask(path, "POST", body);
    return { status: response.status, body: await response.json() };
  }

  stop(): void {
    this.admin.stop();
    this.conduits.stop();
    this.facts.files.close();
  }
}

/** Registers a test of a rig in a folder in memory. */
export function adminScene(
  name: string,
  test: (rig: AdminRig, timers: FakeTimers) => Promise<void>,
): void {
  Deno.test(name, () =>
    inMemoryFolder(async (root) => {
      const timers = new FakeTimers();
      const rig = await AdminRig.open(timers, root);
      try {
        await test(rig, timers);
      } finally {
        rig.stop();
      }
    }));
}
