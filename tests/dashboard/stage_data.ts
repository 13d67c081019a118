/**
 * What a busy server would answer: thousands of nodes and conduits with all that
 * may be wrong with them, the same each time. What there is once is as in the
 * answers for golden texts, and so is the time at which it begins.
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
import {
  CONDUITS_ANSWER,
  NODE,
  NODES,
  NOW,
  SERVER_STATUS,
} from "../support/rigs/ask_answers.ts";

/** How much there is. */
export const STAGE_SIZE = { nodes: 5_000, conduits: 10_000 } as const;

/** Names that a peer could choose to be in the way. */
export const HOSTILE_NAMES: readonly string[] = [
  `<img src=x onerror="document.title='owned'">`,
  `"><script>document.title='owned'</script>`,
  "\u202egnp.exe\u202c-\u2067node",
  "x".repeat(1024),
  "a\u0000b\nc\u200bd",
  "__proto__",
];

const SITES = ["shop", "edge", "kiosk", "plant", "lab"];
const TARGETS = [
  "tcp 10.0.0.7:5432",
  "tcp 127.0.0.1:10250",
  "tcp registry.local:5000",
  "udp 10.0.0.2:53",
  "unix /run/containerd/containerd.sock",
];
const CALLERS = ["alice", "bob", "kube-apiserver", "prometheus", "ci-runner"];

/** A part of 1 that looks like chance, and is the same each time. */
function chance(index: number): number {
  return (Math.imul(index + 1, 0x9e3779b1) >>> 0) / 2 ** 32;
}

function siteName(index: number): string {
  return `${SITES[index % 5]}-${index}`;
}

/** When that was, or will be, by the clock of the stage. */
function at(seconds: number): string {
  return new Date(Date.parse(NOW) + seconds * 1_000).toISOString();
}

const DAY_SECONDS = 86_400;

export class StageData {
  readonly nodes: Map<string, NodeSummary>;
  readonly conduits: Map<string, ConduitInfo>;
  readonly events: readonly EventInfo[];
  /** Seconds that have passed. */
  #turn = 0;

  constructor() {
    const nodes = Array.from(
      { length: STAGE_SIZE.nodes },
      (_, index) => nodeOf(index),
    );
    const online = nodes.filter(({ state }) => state === "online");
    const conduits = Array.from(
      { length: STAGE_SIZE.conduits },
      (_, index) => conduitOf(index, online[index % online.length]!.name),
    );
    this.nodes = new Map(nodes.map((node) => [node.name, node]));
    this.conduits = new Map(conduits.map((conduit) => [conduit.id, conduit]));
    this.events = Array.from({ length: 60 }, (_, index) => ({
      ...NODE.events[index % 2]!,
      at: at(-index * 37 - 3),
      node: nodes[(index * 61 + 7) % nodes.length]!.name,
    }));
  }

  /** Values move on, as they do each second. @returns What is other. */
  step(): {
    readonly nodes: readonly NodeSummary[];
    readonly conduits: readonly ConduitInfo[];
  } {
    const factor = 0.8 + chance(this.#turn++) * 0.4;
    const nodes = [...this.nodes.values()]
      .filter(({ state }, index) =>
        state === "online" && index % 25 === this.#turn % 25
      )
      .map((node) => ({ ...node, toTargetRate: node.toTargetRate * factor }));
    const conduits = this.top(200).map((conduit) => ({
      ...conduit,
      fromTargetRate: conduit.fromTargetRate * factor,
      fromTargetBytes: conduit.fromTargetBytes + conduit.fromTargetRate,
    }));
    for (const node of nodes) this.nodes.set(node.name, node);
    for (const conduit of conduits) this.conduits.set(conduit.id, conduit);
    return { nodes, conduits };
  }

  top(limit: number): readonly ConduitInfo[] {
    return [...this.conduits.values()]
      .sort((a, b) => b.fromTargetRate - a.fromTargetRate).slice(0, limit);
  }

  status(): StatusAnswer {
    const { traffic, program } = SERVER_STATUS;
    const of = Map.groupBy(this.nodes.values(), ({ state }) => state);
    const count = (state: NodeSummary["state"]) => of.get(state)?.length ?? 0;
    const wave = 1 + Math.sin(this.#turn / 9) / 4;
    return {
      ...SERVER_STATUS,
      program: { ...program, now: at(this.#turn) },
      traffic: {
        ...traffic,
        conduits: this.conduits.size,
        toTargetRate: traffic.toTargetRate * wave,
        dialP99Ms: traffic.dialP99Ms! * wave,
      },
      nodes: {
        ...SERVER_STATUS.nodes!,
        ...{ online: count("online"), offline: count("offline") },
        ...{ pending: count("pending"), revoked: count("revoked") },
        lastGone: of.get("offline")!.slice(0, 20),
      },
      top: this.top(10),
    };
  }

  node(name: string): NodeDetail | undefined {
    const node = this.nodes.get(name);
    return node && { ...NODE, ...node, now: at(this.#turn) };
  }

  /** An hour in which it was slow for ten minutes. */
  history(): HistoryAnswer {
    const samples = Array.from({ length: 360 }, (_, index) => ({
      at: at(this.#turn - (360 - index) * 10),
      ...{ conduits: 9_000 + index, toTargetRate: 4e6, fromTargetRate: 9e6 },
      ...{ dialRate: 40, failedDials: index % 7 },
      ...{ dialP50Ms: 2, dialP99Ms: index > 120 && index < 180 ? 900 : 12 },
    }));
    return { stepMs: 10_000, samples };
  }

  services(): ServicesAnswer {
    const services = Array.from({ length: 600 }, (_, index) => ({
      name: `web.${siteName(index)}`,
      source: index % 3 === 0 ? "etcd" : "file /etc/tunnel/services.yaml",
      ports: index % 4 === 1 ? ["http 80", "https 443"] : ["tcp 5432"],
      endpoints: Array.from({ length: 1 + index % 7 }, (_, at) => ({
        address: `10.${index % 250}.${at}.7:5432`,
        node: siteName(index * 5 + at),
        isReady: (index + at) % 9 !== 0,
      })),
      ...(index % 97 === 5 && { problem: "two ports are called http" }),
    }));
    return { services, total: services.length };
  }

  discovery(): DiscoveryAnswer {
    const state = (index: number) =>
      index % 113 === 4 ? "refused" : index % 57 === 3 ? "waiting" : "in sync";
    return {
      clients: Array.from({ length: 340 }, (_, index) => ({
        name: `${siteName(index)}/proxy`,
        form: index % 6 === 0 ? "envoy" : "node proxy",
        mode: "sotw",
        since: at(-index * 311),
        state: state(index),
        ...(state(index) === "refused" &&
          { problem: "Cluster web: lb_policy MAGLEV is not known here" }),
        kinds: [{ kind: "cluster", resources: 600, state: "synced" }],
      })),
    };
  }

  certificates(): CertificatesAnswer {
    const terms = { notBefore: at(-3 * DAY_SECONDS), issuer: "CN=tunnel CA 1" };
    return {
      certificates: [
        {
          ...{ use: "frontend", subject: "CN=tunnel-server", ...terms },
          ...{ notAfter: at(9 * DAY_SECONDS), renewal: "by hand" },
          problem: "it expires in 9 days",
        },
        ...[...this.nodes.values()].slice(0, 2_000).map(({ name }, index) => ({
          ...{ use: `node ${name}`, subject: `CN=${name}`, ...terms },
          notAfter: at((2 + chance(index)) * DAY_SECONDS),
          renewal: "by itself" as const,
        })),
      ],
    };
  }

  audit(): readonly Readonly<Record<string, unknown>>[] {
    return Array.from({ length: 80 }, (_, index) => ({
      time: at(-index * 97),
      decision: index % 11 === 0 ? "denied" : "allowed",
      subject: CALLERS[index % 5],
      node: siteName(index),
      target: TARGETS[index % 5],
    }));
  }
}

function nodeOf(index: number): NodeSummary {
  const [online, offline, pending, revoked] = NODES.nodes;
  const like = index % 61 === 7
    ? offline!
    : index % 1667 === 11
    ? pending!
    : index % 430 === 13
    ? revoked!
    : online!;
  const hostile = index % 5 === 3 ? HOSTILE_NAMES[(index - 3) / 5] : undefined;
  const isOnline = like === online;
  return {
    ...like,
    name: hostile ?? siteName(index),
    since: at(-chance(index) * 4e5),
    ...(isOnline && {
      conduits: 2,
      toTargetRate: chance(index) < 0.4 ? 10 ** (2 + chance(index) * 10) : 0,
      roundTripMs: 2 + chance(index) * 70,
      address: `203.0.113.${index % 254}:${40_000 + index}`,
    }),
    ...(isOnline && index % 211 === 17 && {
      problem: "its round trip is 740 ms: the line is full, or far",
    }),
    ...(index === 51 && { isDuplicate: true }),
  };
}

function conduitOf(index: number, node: string): ConduitInfo {
  const [moving, dialing] = CONDUITS_ANSWER.conduits;
  const isMoving = chance(index) < 0.3;
  const isStalled = !isMoving && index % 97 === 5;
  const conduit: ConduitInfo = {
    ...(index % 251 === 9 ? dialing! : moving!),
    id: (0x9e3779b97f4a7c15n * BigInt(index + 1) & 0xffffffffffffffffn)
      .toString(16).padStart(16, "0"),
    caller: CALLERS[index % 5]!,
    node,
    target: TARGETS[index % 5]!,
    startedAt: at(-chance(index) * 50_000),
    fromTargetRate: isMoving ? 10 ** (1 + chance(index) * 18) : 0,
    idleMs: isMoving ? 30 : Math.round(chance(index) * 90_000),
    queuedBytes: isStalled ? 65_536 : 0,
  };
  if (isStalled) return conduit;
  const { waitsFor: _, ...free } = conduit;
  return free;
}
