/**
 * A discovery server with a catalog, and a thousand clients that want all of it:
 * how long a change takes until the last of them has it.
 *
 * @module
 */

import { DiscoveryServer } from "../../peers/discovery_server.ts";
import { findPeer } from "../../peers/peers.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import type { Contender } from "../contender.ts";
import { generate, type Sample } from "../generator.ts";
import type { ContenderName, Metric } from "../metric.ts";

/** Who serves discovery. */
export const DISCOVERY_SERVERS = [
  "ours",
  "gcp-linear",
  "gcp-snapshot",
] as const satisfies readonly ContenderName[];

/** What the clients do. */
export interface XdsLoad {
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
export async function measureDiscovery(
  { name, workspace }: Contender,
  load: XdsLoad,
): Promise<Sample> {
  const { phase, streams = 1_000, clusters = 200, endpoints = 3 } = load;
  const shape = [`-clusters=${clusters}`, `-endpoints=${endpoints}`];
  const file = await writeCatalog(workspace, shape);
  await using server = await DiscoveryServer.start(workspace, {
    maker: makerOf(name),
    file,
    isQuiet: true,
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

/** The same for both protocols, as a metric and one named `…-delta`. */
export function overBoth(
  name: string,
  metric: Omit<Metric, "run">,
  loadOf: (isQuick: boolean) => XdsLoad,
): Readonly<Record<string, Metric>> {
  return Object.fromEntries([false, true].map((isDelta) => [
    isDelta ? `${name}-delta` : name,
    {
      ...metric,
      title: `discovery, ${isDelta ? "Delta" : "SotW"}: ${metric.title}`,
      isOnRequest: true,
      run: (contender, { isQuick }) =>
        measureDiscovery(contender, { ...loadOf(isQuick), isDelta }),
    } satisfies Metric,
  ]));
}

/** In a folder of its own, which the server watches. */
async function writeCatalog(
  workspace: Workspace,
  shape: readonly string[],
): Promise<string> {
  const folder = workspace.path("catalog");
  await Deno.mkdir(folder);
  const file = `${folder}/services.json`;
  const { success, stderr } = await new Deno.Command(
    await findPeer("xds-adsload"),
    { args: [...shape, `-write=${file}`] },
  ).output();
  if (success) return file;
  throw new Error(`Cannot write ${file}: ${new TextDecoder().decode(stderr)}`);
}

function makerOf(name: ContenderName): typeof DISCOVERY_SERVERS[number] {
  const maker = DISCOVERY_SERVERS.find((each) => each === name);
  if (maker === undefined) throw new TypeError(`${name} serves no discovery`);
  return maker;
}
