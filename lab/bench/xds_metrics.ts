/**
 * Discovery beside the reference on go-control-plane, with 1,000 clients, 200
 * clusters and 3 endpoints each: its cache that sends what changed where one
 * endpoint changes, the one that most have where everything does.
 *
 * @module
 */

import type { Workspace } from "../../tests/support/program/workspace.ts";
import { DiscoveryServer } from "../../tests/support/peers/discovery_server.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { mustEnd } from "../../tests/support/program/run.ts";
import type { Contender } from "./contender.ts";
import { generate, type Sample } from "./generator.ts";
import { type Figure, less, type Letter, type Metric } from "./metric.ts";

/** Who serves discovery. */
const DISCOVERY_SERVERS = ["ours", "gcp-linear", "gcp-snapshot"] as const;

/** What the clients do. */
interface XdsLoad {
  readonly phase: "connect" | "one" | "full" | "flaps";
  readonly isDelta?: boolean;
  readonly streams?: number;
  readonly clusters?: number;
  readonly endpoints?: number;
  /** Further streams that stop reading once they have everything. */
  readonly slow?: number;
  readonly rounds?: number;
  readonly flapSeconds?: number;
}

/** Runs it on a new server: memory must not remember the last load. */
async function measureDiscovery(
  { name, workspace }: Contender,
  load: XdsLoad,
): Promise<Sample> {
  const maker = DISCOVERY_SERVERS.find((each) => each === name);
  if (maker === undefined) throw new TypeError(`${name} serves no discovery`);
  const { phase, streams = 1_000, clusters = 200, endpoints = 3 } = load;
  const shape = [`-clusters=${clusters}`, `-endpoints=${endpoints}`];
  const file = await writeCatalog(workspace, shape);
  await using server = await DiscoveryServer.start(workspace, {
    ...{ maker, file, isQuiet: true },
  });
  const loadWith = (...flags: readonly string[]): Promise<Sample> =>
    generate({
      workspace,
      program: "xds-adsload",
      flags: [
        ...[`-addr=127.0.0.1:${server.port}`, `-catalog=${file}`, ...shape],
        ...[`-pid=${server.child.pid}`, ...flags],
        ...(load.isDelta ? ["-delta"] : []),
      ],
      pieces: [server.child],
    });
  // Ours answers nobody in its first two seconds, in which agents come back.
  await loadWith("-phase=connect", "-streams=1");
  return await loadWith(
    ...[`-phase=${phase}`, `-streams=${streams}`, `-slow=${load.slow ?? 0}`],
    ...(load.rounds === undefined ? [] : [`-rounds=${load.rounds}`]),
    ...(load.flapSeconds === undefined
      ? []
      : [`-flap-for=${load.flapSeconds}s`]),
  );
}

/** In a folder of its own, which the server watches. */
async function writeCatalog(
  workspace: Workspace,
  shape: readonly string[],
): Promise<string> {
  const folder = workspace.path("catalog");
  await Deno.mkdir(folder);
  const file = `${folder}/services.json`;
  await mustEnd([await findPeer("xds-adsload"), ...shape, `-write=${file}`]);
  return file;
}

/** The same for both protocols, as a metric and one named `…-delta`. */
function overBoth(
  name: string,
  title: string,
  figures: readonly Figure[],
  loadOf: (isQuick: boolean) => XdsLoad,
): Readonly<Record<string, Metric>> {
  return Object.fromEntries([false, true].map((isDelta) => [
    isDelta ? `${name}-delta` : name,
    {
      title: `discovery, ${isDelta ? "Delta" : "SotW"}: ${title}`,
      contenders: DISCOVERY_SERVERS,
      figures,
      isOnRequest: true,
      run: (contender, { isQuick }) =>
        measureDiscovery(contender, { ...loadOf(isQuick), isDelta }),
    } satisfies Metric,
  ]));
}

/** No worse than these. */
function figuresBeside(...letters: readonly Letter[]): Figure[] {
  const bound = { bars: Object.fromEntries(letters.map((one) => [one, 1])) };
  return [
    less("last_ms", "last client", "ms", bound),
    less("p50_ms", "p50", "ms"),
    less("cpu_s", "CPU", "s each", bound),
    less("mb", "sent", "MB each"),
    less("rss_mib", "memory, most", "MiB", bound),
  ];
}

const FLAP_FIGURES: readonly Figure[] = [
  // A window of 50 ms allows 20 responses a second.
  less("most_responses_per_second", "most responses", "/s of one", {
    limit: 20,
  }),
  less("last_ms", "last change", "ms", { limit: 2_000 }),
  less("cpu_s", "CPU", "s"),
  less("rss_mib", "memory, most", "MiB"),
];

// deno-fmt-ignore: the columns are the point.
export const XDS_METRICS: Readonly<Record<string, Metric>> = {
  ...overBoth("xds-connect", "all connect and have everything", figuresBeside("L", "G"), () => ({ phase: "connect" })),
  ...overBoth("xds-one-endpoint", "one endpoint changes", figuresBeside("L"),
    (isQuick) => ({ phase: "one", rounds: isQuick ? 8 : 20 })),
  ...overBoth("xds-full-push", "every cluster changes", figuresBeside("G"),
    (isQuick) => ({ phase: "full", rounds: isQuick ? 3 : 8 })),
  ...overBoth("xds-flaps", "100 changes a second", FLAP_FIGURES,
    (isQuick) => ({ phase: "flaps", flapSeconds: isQuick ? 5 : 60 })),
  ...overBoth("xds-flaps-few", "100 changes a second, 10 clients", FLAP_FIGURES,
    (isQuick) => ({ ...{ phase: "flaps", streams: 10, flapSeconds: isQuick ? 5 : 20 } })),
  ...overBoth("xds-stopped", "every cluster changes, beside 200 that read nothing any more", figuresBeside("G"),
    (isQuick) => ({ phase: "full", rounds: isQuick ? 5 : 20, slow: 200 })),
  ...overBoth("xds-large", "one of 10,000 endpoints of one cluster changes, 10 clients",
    [less("last_ms", "last client", "ms", { limit: 1_000 }), less("cpu_s", "CPU", "s each"),
      less("rss_mib", "memory, most", "MiB")],
    () => ({ ...{ phase: "one", streams: 10, clusters: 1, endpoints: 10_000 }, rounds: 5 })),
};
