/**
 * What a busy server would answer: thousands of nodes and conduits with all that
 * may be wrong with them, the same each time.
 *
 * @module
 */

import type {
  CertificatesAnswer,
  DiscoveryAnswer,
  EventInfo,
  HistoryAnswer,
  ServicesAnswer,
} from "../../proto/admin/list_answers.ts";
import type {
  ConduitInfo,
  NodeDetail,
  NodeSummary,
} from "../../proto/admin/node_answer.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";

/** How much there is. */
export interface StageSize {
  readonly nodes: number;
  readonly conduits: number;
}

/** Names that a peer could choose to be in the way. */
export const HOSTILE_NAMES: readonly string[] = [
  `<img src=x onerror="document.title='owned'">`,
  `"><script>document.title='owned'</script>`,
  "\u202egnp.exe\u202c-\u2067node",
  "x".repeat(1024),
  "a\u0000b\nc\u200bd",
  "__proto__",
];

const SERVERS = ["par-1", "fra-1", "ams-1"];
const SITES = ["shop", "edge", "kiosk", "plant", "lab"];
const TARGETS = [
  "tcp 10.0.0.7:5432",
  "tcp 127.0.0.1:10250",
  "tcp 10.0.4.20:443",
  "tcp registry.local:5000",
  "udp 10.0.0.2:53",
  "unix /run/containerd/containerd.sock",
];
const CALLERS = ["alice", "bob", "kube-apiserver", "prometheus", "ci-runner"];

/** A small generator: the stage is the same each time. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export class StageData {
  readonly nodes: Map<string, NodeSummary> = new Map<string, NodeSummary>();
  readonly conduits: Map<string, ConduitInfo> = new Map<string, ConduitInfo>();
  readonly events: EventInfo[] = [];
  readonly #random = randomOf(7);
  readonly #startedMs: number = Date.now() - 93 * 3_600_000;
  #turn = 0;

  constructor({ nodes, conduits }: StageSize) {
    for (let index = 0; index < nodes; index++) this.#addNode(index);
    const online = [...this.nodes.values()]
      .filter(({ state }) => state === "online");
    for (let index = 0; index < conduits; index++) {
      this.#addConduit(index, online[index % online.length]!.name);
    }
    for (let index = 0; index < 60; index++) this.#addEvent(index);
  }

  /** Values move on, as they do each second. @returns Names that changed. */
  step(): { readonly nodes: string[]; readonly conduits: string[] } {
    this.#turn++;
    const changed: string[] = [];
    for (const [name, node] of this.nodes) {
      if (node.state !== "online" || this.#random() > 0.04) continue;
      changed.push(name);
      const factor = 0.6 + this.#random() * 0.8;
      this.nodes.set(name, {
        ...node,
        toTargetRate: Math.round(node.toTargetRate * factor),
        fromTargetRate: Math.round(node.fromTargetRate * factor),
      });
    }
    const moved: string[] = [];
    for (const conduit of this.top(200)) {
      const factor = 0.8 + this.#random() * 0.4;
      moved.push(conduit.id);
      this.conduits.set(conduit.id, {
        ...conduit,
        toTargetRate: Math.round(conduit.toTargetRate * factor),
        fromTargetRate: Math.round(conduit.fromTargetRate * factor),
        fromTargetBytes: conduit.fromTargetBytes + conduit.fromTargetRate,
        toTargetBytes: conduit.toTargetBytes + conduit.toTargetRate,
        idleMs: 20,
      });
    }
    return { nodes: changed, conduits: moved };
  }

  top(limit: number): ConduitInfo[] {
    return [...this.conduits.values()].sort((a, b) => rateOf(b) - rateOf(a))
      .slice(0, limit);
  }

  status(): StatusAnswer {
    const all = [...this.nodes.values()];
    const of = (state: NodeSummary["state"]) =>
      all.filter((node) => node.state === state);
    const wave = 1 + Math.sin(this.#turn / 9) / 4 + this.#random() / 10;
    const sum = (rate: (one: ConduitInfo) => number) =>
      [...this.conduits.values()].reduce((all, one) => all + rate(one), 0);
    return {
      program: this.#program(),
      warnings: warnings(),
      traffic: {
        conduits: this.conduits.size,
        pendingDials: 4,
        toTargetBytes: 812e9,
        fromTargetBytes: 6.4e12,
        toTargetRate: sum(({ toTargetRate }) => toTargetRate) * wave,
        fromTargetRate: sum(({ fromTargetRate }) => fromTargetRate) * wave,
        dialRate: 38.4 * wave,
        failedDials: 1312,
        dialP50Ms: 4.1 * wave,
        dialP99Ms: 61 * wave * wave,
      },
      expiries: expiries(),
      nodes: {
        online: of("online").length,
        offline: of("offline").length,
        pending: of("pending").length,
        revoked: of("revoked").length,
        links: all.reduce((sum, { links }) => sum + links, 0),
        lastGone: of("offline").slice(0, 20),
        slowest: of("online").filter(({ problem }) => problem).slice(0, 5)
          .map(({ name, roundTripMs, problem }) => ({
            name,
            ...(roundTripMs !== undefined && { roundTripMs }),
            why: problem!,
          })),
      },
      servers: [
        { id: "fra-1", address: "10.8.0.2:8091", agents: 1640 },
        { id: "ams-1", address: "10.8.0.3:8091", agents: 1633 },
      ],
      sources: [
        { name: "file /etc/tunnel/services.yaml", isSynced: true },
        {
          name: "etcd",
          isSynced: false,
          problem: "no endpoint answers since 14 min",
        },
      ],
      discovery: { clients: 340, inSync: 331, refused: 3 },
      top: this.top(10),
    };
  }

  #program(): StatusAnswer["program"] {
    return {
      program: "server",
      id: "par-1",
      version: "0.1.0",
      pid: 4711,
      startedAt: isoOf(this.#startedMs),
      now: new Date().toISOString(),
      isReady: true,
      isDraining: false,
      addresses: {
        agents: "0.0.0.0:8091",
        frontend: "127.0.0.1:8090",
        health: "0.0.0.0:8092",
        admin: "127.0.0.1:8095",
      },
      residentBytes: 412e6 + this.#random() * 1e6,
      cpuSeconds: 5_412,
    };
  }

  node(name: string): NodeDetail | undefined {
    const node = this.nodes.get(name);
    if (node === undefined) return undefined;
    return {
      ...node,
      joinedAt: ago(86_400 * 210),
      joinedFrom: "203.0.113.77:50412",
      grants: [`host=${name}`],
      identifiers: [`host=${name}`, "ipv4=10.0.0.7"],
      linkDetails: node.servers.map((server, index) => ({
        id: `${index + 1}`,
        peer: name,
        carrier: "streams" as const,
        address: node.address ?? "",
        since: node.since ?? ago(60),
        software: `tunnel ${node.version} at ${server}`,
        state: "linked" as const,
        ...(node.roundTripMs !== undefined &&
          { roundTripMs: node.roundTripMs }),
        silentMs: 210,
        conduits: node.conduits,
        bulkConduits: 0,
      })),
      services: [{ name: "postgres.shop" }, {
        name: "metrics",
        problem: "port 9100 is announced by shop-2 as well",
      }],
      warnings: [],
      conduitDetails: [...this.conduits.values()]
        .filter((conduit) => conduit.node === name).slice(0, 50),
      events: this.events.filter((event) => event.node === name),
    };
  }

  /** An hour in which it was slow for ten minutes. */
  history(): HistoryAnswer {
    const nowMs = Date.now();
    const samples = Array.from({ length: 360 }, (_, index) => ({
      at: new Date(nowMs - (360 - index) * 10_000).toISOString(),
      ...{ conduits: 9_000 + index, toTargetRate: 4e6, fromTargetRate: 9e6 },
      ...{ dialRate: 40, failedDials: index % 7 },
      ...{ dialP50Ms: 2, dialP99Ms: index > 120 && index < 180 ? 900 : 12 },
    }));
    return { stepMs: 10_000, samples };
  }

  services(): ServicesAnswer {
    const services = Array.from({ length: 600 }, (_, index) => ({
      name: `${["postgres", "web", "metrics", "cache"][index % 4]}.${
        SITES[index % 5]
      }-${index}`,
      source: index % 3 === 0 ? "etcd" : "file /etc/tunnel/services.yaml",
      ports: index % 4 === 1 ? ["http 80", "https 443"] : ["tcp 5432"],
      endpoints: Array.from({ length: 1 + index % 7 }, (_, at) => ({
        address: `10.${index % 250}.${at}.7:5432`,
        node: `${SITES[index % 5]}-${index * 5 + at}`,
        isReady: (index + at) % 9 !== 0,
      })),
      ...(index % 97 === 5 &&
        { problem: "two ports are called http: the second is not served" }),
    }));
    return { services, total: services.length };
  }

  discovery(): DiscoveryAnswer {
    return {
      clients: Array.from({ length: 340 }, (_, index) => ({
        name: `${SITES[index % 5]}-${index}/proxy`,
        form: index % 6 === 0 ? "envoy" : "node proxy",
        mode: index % 6 === 0 ? "incremental" : "state of the world",
        since: ago(index * 311),
        state: index % 113 === 4
          ? "refused" as const
          : index % 57 === 3
          ? "waiting" as const
          : "in sync" as const,
        ...(index % 113 === 4 &&
          { problem: "Cluster web: lb_policy MAGLEV is not known here" }),
        kinds: [
          { kind: "Listener", resources: 600, state: "acknowledged" },
          { kind: "Cluster", resources: 600, state: "acknowledged" },
        ],
      })),
    };
  }

  certificates(): CertificatesAnswer {
    return {
      certificates: [
        {
          use: "frontend",
          subject: "CN=tunnel-server",
          issuer: "CN=Example Issuing CA 3",
          notBefore: ago(86_400 * 81),
          notAfter: ahead(9),
          renewal: "by hand",
          problem: "it expires in 9 days",
        },
        {
          use: "authority",
          subject: "CN=tunnel CA 1",
          issuer: "CN=tunnel CA 1",
          notBefore: ago(86_400 * 400),
          notAfter: ahead(3_250),
          renewal: "by hand",
        },
        ...[...this.nodes.values()].filter((node) => node.certificateUntil)
          .slice(0, 2_000).map(({ name, certificateUntil }) => ({
            use: `node ${name}`,
            subject: `CN=${name}`,
            issuer: "CN=tunnel CA 1",
            notBefore: ago(86_400 * 3),
            notAfter: certificateUntil!,
            renewal: "by itself" as const,
          })),
      ],
    };
  }

  audit(): readonly Readonly<Record<string, unknown>>[] {
    return Array.from({ length: 80 }, (_, index) => ({
      time: ago(index * 97),
      decision: index % 11 === 0 ? "denied" : "allowed",
      subject: CALLERS[index % 5],
      node: `${SITES[index % 5]}-${index}`,
      target: TARGETS[index % 6],
      rule: index % 11 === 0 ? "(none)" : "operators",
    }));
  }

  #addNode(index: number): void {
    const r = this.#random;
    const hostile = index % 5 === 3
      ? HOSTILE_NAMES[(index - 3) / 5]
      : undefined;
    const name = hostile ?? `${SITES[index % 5]}-${index}`;
    const state = index % 61 === 7
      ? "offline"
      : index % 1667 === 11
      ? "pending"
      : index % 430 === 13
      ? "revoked"
      : "online";
    const isOnline = state === "online";
    const isBusy = r() < 0.4;
    const first = SERVERS[index % 3]!;
    const isSlow = isOnline && index % 211 === 17;
    this.nodes.set(name, {
      name,
      state,
      since: ago(isOnline ? r() * 4e5 : r() * 9e4),
      isJoined: true,
      version: r() < 0.85 ? "0.1.0" : "0.0.9",
      address: `203.0.113.${index % 254}:${40_000 + index % 20_000}`,
      links: isOnline ? 2 : 0,
      conduits: 0,
      toTargetRate: isOnline && isBusy ? Math.round(10 ** (2 + r() * 4)) : 0,
      fromTargetRate: isOnline && isBusy ? Math.round(10 ** (2 + r() * 5)) : 0,
      servers: isOnline ? [first, SERVERS[(index + 1) % 3]!] : [],
      ...(isOnline && { roundTripMs: isSlow ? 740 : 2 + r() * 70 }),
      certificateUntil: ahead(2 + r() * 5),
      ...(state === "offline" &&
        { reason: "the link was lost: nothing arrived for 30 s" }),
      ...(state === "revoked" && { reason: "stolen; by alice" }),
      ...(isSlow && {
        problem: "its round trip is 740 ms, 19 times its least: the line is " +
          "full, or far",
      }),
      ...(index === 51 && { isDuplicate: true }),
    });
  }

  #addConduit(index: number, node: string): void {
    const r = this.#random;
    const state = index % 251 === 9 ? "dialing" : "open";
    const isMoving = state === "open" && r() < 0.3;
    const isStalled = !isMoving && index % 97 === 5;
    const id = (0x9e3779b97f4a7c15n * BigInt(index + 1) & 0xffffffffffffffffn)
      .toString(16).padStart(16, "0");
    const owner = this.nodes.get(node)!;
    this.nodes.set(node, { ...owner, conduits: owner.conduits + 1 });
    this.conduits.set(id, {
      id,
      state,
      caller: CALLERS[index % 5]!,
      from: `10.9.${index % 200}.4:${30_000 + index}`,
      node,
      target: TARGETS[index % 6]!,
      startedAt: ago(r() * 50_000),
      ageMs: 0,
      dialMs: 2 + r() * 40,
      toTargetBytes: Math.round(10 ** (2 + r() * 6)),
      fromTargetBytes: Math.round(10 ** (2 + r() * 8)),
      toTargetRate: isMoving ? Math.round(10 ** (1 + r() * 4)) : 0,
      fromTargetRate: isMoving ? Math.round(10 ** (1 + r() * 6)) : 0,
      roundTripMs: 2 + r() * 60,
      windowBytes: 65_536,
      queuedBytes: isStalled ? 65_536 : 0,
      ...(isStalled && { waitsFor: "caller" as const }),
      ...(state === "dialing" && { waitsFor: "dial" as const }),
      idleMs: isMoving ? 30 : Math.round(r() * 90_000),
    });
  }

  #addEvent(index: number): void {
    const names = [...this.nodes.keys()];
    const node = names[(index * 61 + 7) % names.length]!;
    const kinds = [
      ["linked", "linked from 203.0.113.9 over streams"],
      ["unlinked", "the link was lost: nothing arrived for 30 s"],
      ["dial-failed", "10.0.0.7:5432 refused the connection"],
      ["refused", "its certificate was revoked"],
      ["certificate", "its certificate was renewed"],
    ] as const;
    const [kind, message] = kinds[index % 5]!;
    this.events.push({
      ...{ at: ago(index * 37 + 3), kind, message, node },
      ...(kind === "dial-failed" && { code: "TUN503", times: 4 }),
    });
  }
}

function warnings(): StatusAnswer["warnings"] {
  return [
    {
      ...{ code: "TUN203", severity: "error", node: "edge-17" },
      message: "Two machines use the identity of edge-17, from " +
        "203.0.113.9 and 198.51.100.4; revoke it and join both again",
      since: ago(42 * 60),
    },
    {
      ...{ code: "TUN210", severity: "warning" },
      message: "The frontend certificate expires in 9 days and is not " +
        "renewed by itself; put a new one at /etc/tunnel/frontend.pem",
      since: ago(86_400),
    },
    {
      ...{ code: "TUN124", severity: "warning" },
      message: "Source etcd is not in sync since 14 min: no endpoint " +
        "answers; services of it are as they were then",
      since: ago(14 * 60),
    },
    {
      ...{ severity: "notice" },
      message: "3 nodes wait for approval; see `tunnel node list`",
    },
  ];
}

function expiries(): StatusAnswer["expiries"] {
  return [
    {
      what: "frontend certificate",
      at: ahead(9),
      renewal: "by hand",
    },
    { what: "token t3", at: ahead(0.6), renewal: "by hand" },
    ...Array.from({ length: 6 }, (_, index) => ({
      what: `certificate of node shop-${index * 5}`,
      at: ahead(2.2 + index / 3),
      renewal: "by itself" as const,
    })),
  ];
}

function rateOf({ toTargetRate, fromTargetRate }: ConduitInfo): number {
  return toTargetRate + fromTargetRate;
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

function ago(seconds: number): string {
  return isoOf(Date.now() - seconds * 1000);
}

function ahead(days: number): string {
  return isoOf(Date.now() + days * 86_400_000);
}
