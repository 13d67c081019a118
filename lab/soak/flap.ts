// deno-lint-ignore-file no-console -- a part of a command that prints its results.
/**
 * `tunnel proxy` under TCP and UDP load while all endpoints come and go: neither
 * descriptors nor sessions nor memory may grow, and no client may notice.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";
import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ServiceProxyProcess } from "../peers/service_proxy.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { FlapEndpoints, FlapLoad } from "./flap_load.ts";
import {
  type Holding,
  holdingOf,
} from "../../tests/support/program/processes.ts";
import { grade, gradeMemory, type Sample, WARM_UP_SHARE } from "./growth.ts";

const FLAP_EVERY_MS = 250;
const SAMPLE_EVERY_MS = 2_000;

/** Sessions that are over are soon forgotten, so that their number is flat. */
const UDP_IDLE = "5s";

/**
 * Part of what there is that may be more at the end. Their number follows the
 * speed of the clients; what leaks is a part of thousands in a minute.
 */
const GROWTH_SHARE_MAX = 0.2;

/** Datagrams are lost when the machine is busy, with a proxy and without. */
const UDP_LOSS_MAX = 0.001;

/** Everything that takes part. */
interface Stage {
  readonly proxy: ServiceProxyProcess;
  readonly endpoints: FlapEndpoints;
  readonly load: FlapLoad;
  readonly ports: Ports;
}

interface Ports {
  readonly tcp: number;
  readonly udp: number;
}

interface Round extends Holding {
  readonly atMinutes: number;
  readonly sessions: number;
  readonly connections: number;
}

/** Runs it and says whether anything grew. */
export async function soakFlap(minutes: number, tally: Tally): Promise<void> {
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  using endpoints = new FlapEndpoints();
  const ports = { tcp: freePort(), udp: freePort() };
  try {
    const proxy = await ServiceProxyProcess.start(
      workspace,
      services(ports, endpoints, () => true),
    );
    await using load = new FlapLoad(ports.tcp, ports.udp);
    const stage = { proxy, endpoints, load, ports };
    assess(await watch(stage, minutes), stage, minutes, tally);
  } finally {
    await killAllChildren();
    if (tally.failed === 0) await workspace.remove();
    else console.log(`logs: ${workspace.folder}`);
  }
}

function services(
  ports: Ports,
  { tcp, udp }: FlapEndpoints,
  isIn: (at: number) => boolean,
) {
  return [
    {
      ...{ name: "talk", listen: ports.tcp },
      endpoints: tcp.filter((_, at) => isIn(at)),
    },
    {
      ...{ name: "echo", protocol: "udp", listen: ports.udp } as const,
      policy: { udpIdle: UDP_IDLE },
      endpoints: udp.filter((_, at) => isIn(at)),
    },
  ];
}

async function watch(stage: Stage, minutes: number): Promise<Round[]> {
  const { proxy, endpoints, ports } = stage;
  const rounds: Round[] = [];
  const startMs = performance.now();
  let sampledMs = -Infinity;
  for (;;) {
    const now = performance.now();
    const atMinutes = (now - startMs) / 60_000;
    if (atMinutes >= minutes || proxy.child.hasEnded) return rounds;
    if (now - sampledMs >= SAMPLE_EVERY_MS) {
      sampledMs = now;
      rounds.push({ atMinutes, ...await sample(proxy) });
    }
    // One stays, so that nobody finds the door shut.
    const keep = Math.floor(Math.random() * endpoints.tcp.length);
    await proxy.rewrite(services(
      ports,
      endpoints,
      (at) => at === keep || Math.random() < 0.4,
    ));
    await new Promise((resolve) => setTimeout(resolve, FLAP_EVERY_MS));
  }
}

async function sample(proxy: ServiceProxyProcess) {
  const seen = await proxy.ports();
  const open = (name: string) =>
    seen.find(({ service }) => service === `default/${name}`)?.open ?? 0;
  return {
    ...holdingOf(proxy.child.pid),
    sessions: open("echo"),
    connections: open("talk"),
  };
}

function assess(
  rounds: readonly Round[],
  { proxy, load }: Stage,
  minutes: number,
  tally: Tally,
): void {
  const { counts } = load;
  console.log(`     clients: ${JSON.stringify(counts)}`);
  if (proxy.child.hasEnded) tally.fail("the proxy stays up", "it ended");
  const tcp = `${counts.connections} connections, ${counts.messages} messages`;
  if (counts.failures === 0 && counts.connections > 0) tally.pass(tcp);
  else tally.fail(tcp, `${counts.failures} failed: ${counts.firstFailure}`);
  const udp = `${counts.asked} datagrams, ${counts.lost} not answered`;
  if (counts.lost <= counts.asked * UDP_LOSS_MAX) tally.pass(udp);
  else tally.fail(udp, `more than ${UDP_LOSS_MAX * 100} %`);
  const warm = rounds.filter(({ atMinutes }) =>
    atMinutes >= minutes * WARM_UP_SHARE
  );
  const measured = minutes * (1 - WARM_UP_SHARE);
  const series = (value: (round: Round) => number): Sample[] =>
    warm.map((round) => ({ atMinutes: round.atMinutes, value: value(round) }));
  gradeMemory("the proxy", series((it) => it.memoryKib), measured, tally);
  const flat = (what: string, value: (it: Round) => number) => {
    const samples = series(value);
    const slack = GROWTH_SHARE_MAX * (samples[0]?.value ?? 0);
    grade(what, samples, slack / measured, tally);
  };
  flat("descriptors", (it) => it.descriptors);
  flat("sessions", (it) => it.sessions);
  flat("connections", (it) => it.connections);
}
