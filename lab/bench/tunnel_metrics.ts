/**
 * What a tunnel by itself is measured with: bulk, requests, new connections,
 * handshakes, connections that stall and connections that say nothing.
 *
 * @module
 */

import { startServer } from "../../tests/support/program/tunnel.ts";
import { usageOf } from "../../tests/support/program/processes.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import type { Contender } from "./contender.ts";
import { generate, type Sample } from "./generator.ts";
import {
  type Bound,
  type Figure,
  less,
  type Metric,
  more,
  type Ratios,
  type Route,
  type Scale,
} from "./metric.ts";

type Direction = "down" | "up";

const speed = (bars: Ratios) => more("gbps", "speed", "Gbit/s", { bars });
const cpuPerGb = (bars: Ratios) =>
  less("cpu_s_per_GB", "CPU", "s/GB", { bars });
const cpuPerThousand = (bars: Ratios) =>
  less("cpu_ms_per_1k", "CPU", "ms/1k", { bars });
const p50 = (bound: Bound = {}) => less("p50us", "p50", "µs", bound);
const p99 = (bound: Bound = {}) => less("p99us", "p99", "µs", bound);

/** Of all processes of the tunnel, as the last byte arrives. */
const MEMORY = less("rssMB", "memory after", "MB", { limit: 200 });

/** The same, when the tunnel has had nothing to do for {@linkcode REST_S}. */
const MEMORY_LATER = less("rss_later_MB", "memory at rest", "MB", {
  limit: 200,
});
const REST_S = 5;

/** How evenly the connections shared the tunnel. */
const EVENNESS = more("slowest_fastest", "slowest/fastest", "", { limit: 0.8 });

function bulk(
  direction: Direction,
  connections: number,
  figures: readonly Figure[],
): Metric {
  const s = connections === 1 ? "" : "s";
  return {
    title: `bulk ${direction}, ${connections} connection${s}`,
    load: ({ bulkGb }) => [
      ...[`-mode=${direction}`, `-n=${connections}`, `-gb=${bulkGb}`],
    ],
    isQuick: connections === 1,
    figures,
  };
}

function bulkOfMany(direction: Direction, connections: number): Metric {
  const figures = [speed({ K: 1.8 }), cpuPerGb({ K: 0.5 }), EVENNESS, MEMORY];
  return bulk(direction, connections, figures);
}

/** 128 bytes there, 1,024 back, each answered before the next. */
function requests(connections: number, figures: readonly Figure[]): Metric {
  const s = connections === 1 ? "" : "s";
  return {
    title: `request/response, ${connections} connection${s}`,
    load: ({ seconds }) => ["-mode=rr", `-n=${connections}`, `-d=${seconds}s`],
    isQuick: connections <= 64,
    figures,
  };
}

const REQUEST_FIGURES = [
  more("per_s", "requests", "/s", { bars: { K: 1.2 } }),
  cpuPerThousand({ K: 0.65 }),
  p50(),
  p99({ bars: { K: 0.9 } }),
];

/** 16 at a time, each with one request and one answer. */
function connections(
  title: string,
  route: Route,
  speed: Ratios = {},
  cpu: Ratios = {},
): Metric {
  return {
    title: `new connections, ${title}`,
    route,
    load: ({ seconds }) => ["-mode=conn", "-n=16", `-d=${seconds}s`],
    isQuick: route !== "connect-tls",
    figures: [
      more("per_s", "connections", "/s", { bars: speed }),
      cpuPerThousand(cpu),
      p50(),
      p99(),
    ],
  };
}

/** Enough for V8's compilers. */
const HANDSHAKES_WARM_UP = "2s";

/**
 * Agents that connect: up to the server's first byte, none of them resumed.
 */
async function handshakes(
  { name, workspace }: Contender,
  { seconds }: Scale,
): Promise<Sample> {
  const server = await startServer(workspace, {
    maker: name === "konnectivity" ? "konnectivity" : "ours",
    mode: "grpc",
    transport: "uds",
  });
  const { ca, agent } = workspace.certificates;
  const shake = (duration: string) =>
    generate({
      workspace,
      program: "linegen",
      flags: [
        "handshakes",
        `-to=${server.agentHost}:${server.agentPort}`,
        `-tls=${ca},${agent.cert},${agent.key}`,
        `-d=${duration}`,
      ],
      pieces: [server.child],
    });
  try {
    await shake(HANDSHAKES_WARM_UP);
    const before = await usageOf(server.child.pid);
    const sample = await shake(`${seconds}s`);
    const after = await usageOf(server.child.pid);
    const cpuMs = (after.cpuSeconds - before.cpuSeconds) * 1_000;
    return { ...sample, cpu_ms_each: cpuMs / sample["count"]! };
  } finally {
    await server.child.stop("SIGKILL");
  }
}

/**
 * What a stalled conduit may pin at both ends together: the window that it
 * begins with (64 KiB, it grows only while bytes are consumed) and 64 KiB.
 */
const PINNED_KIB_MAX = 128;

/** Many, since what else grows meanwhile is shared out among them. */
const PINNED = 512;

/**
 * One quick connection beside connections that are not read. The generator
 * measures without and with them, alternately, in one run: the figure is a
 * ratio of ours to ours. Konnectivity cannot take part, one stalled reader
 * stops it.
 */
function besideStalled(
  place: { readonly route: Route; readonly side: string },
  connections: number,
): Metric {
  return {
    title: `request/response beside ${connections} stalled at ${
      inWords(place)
    }`,
    route: place.route,
    contenders: ["ours"],
    load: ({ seconds }) => [
      ...["-mode=rr", "-n=1", `-d=${seconds}s`],
      ...[`-stall=${connections}`, `-stall-side=${place.side}`],
    ],
    figures: [
      less("stall_ratio", "p99 with/without", "x", {
        limit: 1.2,
        isOursAlone: true,
      }),
      less("p99us", "p99 with", "µs", { isOursAlone: true }),
      less("free_p99us", "p99 without", "µs", { isOursAlone: true }),
    ],
  };
}

function pinned(
  place: { readonly route: Route; readonly side: string },
): Metric {
  return {
    title: `memory of connections stalled at ${inWords(place)}`,
    route: place.route,
    contenders: ["ours"],
    isFresh: true,
    load: () => ["-mode=pinned", `-n=${PINNED}`, `-stall-side=${place.side}`],
    figures: [
      less("KB_per_stalled", "pinned", "KB each", {
        limit: PINNED_KIB_MAX,
        isOursAlone: true,
      }),
    ],
  };
}

function inWords(
  { route, side }: { readonly route: Route; readonly side: string },
): string {
  return `the ${side}, ${route === "grpc-uds" ? "gRPC" : "CONNECT"}`;
}

/** `stall-connect-client-8`, `pinned-grpc-target` and their like. */
const STALLED_METRICS: Readonly<Record<string, Metric>> = Object.fromEntries(
  (["connect", "grpc"] as const).flatMap((name) =>
    ["client", "target"].flatMap((side) => {
      const place = { route: `${name}-uds`, side } as const;
      return [
        ...[1, 8, 64].map((count) => [
          `stall-${name}-${side}-${count}`,
          besideStalled(place, count),
        ]),
        [`pinned-${name}-${side}`, pinned(place)],
      ];
    })
  ),
);

const SETTLE_MS = 10_000;

/** A tunnel that has one link and nothing to do. */
async function rest(contender: Contender, scale: Scale): Promise<Sample> {
  const [server, agent] = (await contender.coldTunnel("connect-uds")).pieces;
  if (server === undefined || agent === undefined) {
    throw new TypeError(`${contender.name} has no two ends`);
  }
  await sleep(SETTLE_MS);
  const pids = [server.pid, agent.pid] as const;
  const before = await Promise.all(pids.map(usageOf));
  await sleep(scale.restSeconds * 1000);
  const after = await Promise.all(pids.map(usageOf));
  const percent = (end: 0 | 1) =>
    (after[end]!.cpuSeconds - before[end]!.cpuSeconds) /
    scale.restSeconds * 100;
  return {
    serverRssMib: after[0]!.rssBytes / 2 ** 20,
    agentRssMib: after[1]!.rssBytes / 2 ** 20,
    serverCpuPct: percent(0),
    agentCpuPct: percent(1),
  };
}

// deno-fmt-ignore: the columns are the point.
export const TUNNEL_METRICS: Readonly<Record<string, Metric>> = {
  down1: bulk("down", 1, [speed({ K: 1.8, F: 1.1 }), cpuPerGb({ K: 0.5, F: 0.9 }), MEMORY]),
  up1: bulk("up", 1, [speed({ K: 1.6 }), cpuPerGb({ K: 0.5 }), MEMORY]),
  "bulk-memory": { title: `memory ${REST_S} s after bulk, 64 connections down`,
    load: ({ bulkGb }) => [...["-mode=down", "-n=64", `-gb=${bulkGb}`, `-settle=${REST_S}s`]],
    figures: [MEMORY, MEMORY_LATER] },
  down16: bulkOfMany("down", 16),
  up16: bulkOfMany("up", 16),
  down64: bulkOfMany("down", 64),
  up64: bulkOfMany("up", 64),
  rr1: requests(1,
    [p50({ bars: { K: 0.95 } }), p99({ bars: { K: 1 } }), less("p999us", "p99.9", "µs", { limit: 5_000 }),
      cpuPerThousand({ K: 0.7 })]),
  rr64: requests(64, REQUEST_FIGURES),
  rr512: requests(512, REQUEST_FIGURES),
  conn: connections("CONNECT on a unix socket", "connect-uds", { K: 1.15 }, { K: 0.7 }),
  "conn-grpc": connections("gRPC on a unix socket, dialed for each", "grpc-uds", { K: 1 }),
  "conn-tls": connections("CONNECT over mutual TLS", "connect-tls"),
  handshakes: { title: "mutual TLS handshakes on the agent port", contenders: ["ours", "konnectivity"],
    figures: [more("per_s", "handshakes", "/s", { bars: { K: 0.5 } }), less("cpu_ms_each", "server's CPU", "ms")],
    run: handshakes },
  ...STALLED_METRICS,
  idle: {
    title: "idle connections",
    isFresh: true,
    // Only ours is held to a limit afterwards, and waiting for it takes long.
    load: ({ idleConnections, settleSeconds }, name) => [
      ...["-mode=idle", `-n=${idleConnections}`],
      `-settle=${name === "ours" ? settleSeconds : 0}s`,
    ],
    figures: [
      less("KB_per_conn", "memory", "KB each", { bars: { K: 0.4 }, limit: 16 }),
      // A ratio to nothing says nothing.
      less("idle_cpu_pct", "CPU", "%", { limit: 0.3, isOursAlone: true }),
      less("close_s", "all closed", "s", { limit: 1 }),
      less("rss_back_pct", "memory kept", "% of start", {
        limit: 20,
        isOursAlone: true,
      }),
    ],
  },
  rest: { title: "one link and nothing to do", isFresh: true,
    contenders: ["ours", "ours-server", "ours-agent", "konnectivity"], run: rest,
    figures: [less("serverRssMib", "server", "MiB", { limit: 90 }), less("agentRssMib", "agent", "MiB", { limit: 90 }),
      less("serverCpuPct", "server CPU", "%", { limit: 0.3 }), less("agentCpuPct", "agent CPU", "%", { limit: 0.3 })] },
};
