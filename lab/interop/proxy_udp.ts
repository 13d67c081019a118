/**
 * A real program that speaks UDP through the service proxy, and is only told:
 * statsd.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { FileProxy } from "../peers/service_proxy.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { FlappingService, type ProxyCases } from "./proxy_case.ts";
import { eventually } from "./kube_case.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import { mustEnd } from "../../tests/support/program/run.ts";

const SERVERS = 3;
const TOLD = 1_500;

/** The statsd that the others are named after. */
interface Statsd extends AsyncDisposable {
  readonly address: string;
  /** Of what is told here. */
  count(): Promise<number>;
}

async function startStatsd(workspace: Workspace): Promise<Statsd> {
  const [port, managementPort] = [freePort(), freePort()];
  const file = workspace.path("statsd.cjs");
  await Deno.writeTextFile(
    file,
    `{ port: ${port}, address: "127.0.0.1", mgmt_address: "127.0.0.1",
       mgmt_port: ${managementPort}, backends: [], flushInterval: 3600000 }`,
  );
  const child = new Child({
    name: "statsd",
    command: [
      ...[Deno.execPath(), "run", "--quiet", "--no-config", "--no-lock"],
      ...["--allow-net", "--allow-read", "--allow-env", "--allow-sys"],
      ...["npm:statsd@0.9.0/stats.js", file],
    ],
    logFile: workspace.path("statsd.log"),
  });
  await child.untilPrinted(/server is up/);
  return {
    address: `127.0.0.1:${port}`,
    async count(): Promise<number> {
      const answer = await ask(managementPort, "counters\n");
      return Number(/hits: (\d+)/.exec(answer)?.[1] ?? 0);
    },
    [Symbol.asyncDispose]: () => child.stop("SIGKILL"),
  };
}

async function startStatsds(
  workspace: Workspace,
  stack: AsyncDisposableStack,
): Promise<readonly Statsd[]> {
  const servers: Statsd[] = [];
  for (let at = 0; at < SERVERS; at++) {
    servers.push(stack.use(await startStatsd(workspace)));
  }
  return servers;
}

/** The first of them that has heard anything. */
async function receiverNow(servers: readonly Statsd[]): Promise<Statsd> {
  let receiver: Statsd | undefined;
  await eventually("one is told", async () => {
    const counts = await Promise.all(servers.map((each) => each.count()));
    receiver = servers[counts.findIndex((count) => count > 0)];
    return receiver !== undefined;
  });
  return receiver!;
}

/** Until the word that ends each of its answers. */
async function ask(port: number, question: string): Promise<string> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  await conn.write(new TextEncoder().encode(question));
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(4_096);
  let answer = "";
  while (!answer.includes("END")) {
    const count = await conn.read(chunk);
    if (count === null) break;
    answer += decoder.decode(chunk.subarray(0, count));
  }
  return answer;
}

/** A shell is the client that most scripts have: one socket, kept or not. */
function tell(port: number, count: number, isKept: boolean): Promise<string> {
  const where = `/dev/udp/127.0.0.1/${port}`;
  const line = "echo -n 'hits:1|c'";
  const script = isKept
    ? `exec 3>${where}; for ((i = 0; i < ${count}; i++)); do ${line} >&3; ` +
      "sleep 0.003; done"
    : `for ((i = 0; i < ${count}; i++)); do ${line} >${where}; ` +
      "sleep 0.003; done";
  return mustEnd(["bash", "-c", `set -e; ${script}`]);
}

export const PROXY_UDP_CASES: ProxyCases = {
  "statsd receives everything while statsds come and go": async (workspace) => {
    await using stack = new AsyncDisposableStack();
    const servers = await startStatsds(workspace, stack);
    await using service = await FlappingService.start(workspace, {
      protocol: "udp",
      endpoints: servers.map(({ address }) => address),
    });
    await Promise.all([
      tell(service.port, TOLD, true),
      tell(service.port, TOLD, false),
    ]);
    assert(service.changes > 5, `only ${service.changes} changes`);
    const counts = async () =>
      await Promise.all(servers.map((each) => each.count()));
    const sum = (numbers: readonly number[]) =>
      numbers.reduce((total, one) => total + one, 0);
    let last: readonly number[] = [];
    await eventually("everything is counted", async () => {
      last = await counts();
      return sum(last) >= 2 * TOLD;
    }).catch((error) => {
      throw new Error(`${last} of ${2 * TOLD} were counted`, { cause: error });
    });
    await sleep(200);
    assertEquals(sum(await counts()), 2 * TOLD, "nothing twice");
    assert(last.every((count) => count > 0), `one was never told: ${last}`);
  },

  "statsd misses nothing on one socket while servers are taken out and killed":
    async (workspace) => {
      await using stack = new AsyncDisposableStack();
      const servers = await startStatsds(workspace, stack);
      const port = freePort();
      const services = (left: readonly Statsd[]) => [{
        ...{ name: "statsd", protocol: "udp", listen: port } as const,
        endpoints: left.map(({ address }) => address),
      }];
      const proxy = stack.use(
        await FileProxy.serving(workspace, services(servers)),
      );
      const sent = tell(port, TOLD, true);
      let counted = 0;
      let left = servers;
      while (left.length > 1) {
        const used = await receiverNow(left);
        left = left.filter((each) => each !== used);
        await proxy.rewrite(services(left));
        await eventually("the proxy knows", async () => {
          const [seen] = (await proxy.status()).services;
          return seen!.endpoints.length === left.length;
        });
        // What was handed over before may still be in its socket.
        await sleep(100);
        counted += await used.count();
        await used[Symbol.asyncDispose]();
      }
      await sent;
      const [last] = left as [Statsd];
      await eventually(
        "everything is counted",
        async () => counted + await last.count() >= TOLD,
        5_000,
      );
      assertEquals(counted + await last.count(), TOLD);
    },
};
