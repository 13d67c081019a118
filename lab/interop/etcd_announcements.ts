/**
 * What agents announce, over servers that meet in a real etcd and share nothing
 * else: told by all of them, and unready when the one that has the link is gone.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import { ClusterLoadAssignment } from "../../proto/xds/xds_messages.ts";
import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { XdsProbe } from "../../tests/support/xds/xds_probe.ts";
import type { EtcdCases, EtcdContext } from "./etcd_case.ts";
import { eventually } from "./kube_case.ts";

const WEB = "default/web:80";

/** A server's lease ends after this long, and its agents are unready then. */
const GONE_MS = 20_000;

/** `1`: healthy, `2`: unhealthy, `-`: it is not told (EDS HealthStatus). */
async function healthAt(port: number): Promise<string> {
  using probe = await XdsProbe.plain(port);
  const stream = probe.delta();
  stream.send({
    node: { id: "n", userAgentName: "tunnel" },
    typeUrl: TYPE_URLS.endpoints,
    resourceNamesSubscribe: [WEB],
  });
  const { resources = [] } = await stream.next("endpoints");
  const { resource } = resources[0] ?? {};
  if (resource === undefined) return "-";
  const { endpoints = [] } = ClusterLoadAssignment.decode(resource.value!);
  const [endpoint] = endpoints.flatMap(({ lbEndpoints = [] }) => lbEndpoints);
  return `${endpoint?.healthStatus ?? "-"}`;
}

async function tokenFor(address: string, flags: readonly string[]) {
  const [program, ...args] = ourCommand("token", "create", ...flags);
  const { success, stdout, stderr } = await new Deno.Command(program!, {
    args: [...args, `--server=${address}`, "--json"],
  }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(decoder.decode(stderr));
  return JSON.parse(decoder.decode(stdout)).token;
}

async function areMerged({ workspace, cluster }: EtcdContext): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const run = (name: string, ...words: readonly string[]) => {
    const logFile = workspace.path(`${name}.log`);
    const child = new Child({ name, command: ourCommand(...words), logFile });
    stack.defer(() => child.stop("SIGKILL"));
    return child;
  };
  const members = cluster.urls.map((url) => new URL(url).host).join();
  const state = [
    `--state=etcd://${members}/announced`,
    "--state-key-file=none",
  ];
  const ports = [freePort(), freePort()] as const;
  const agentPort = freePort();
  const address = `127.0.0.1:${agentPort}`;
  const servers: Child[] = [];
  for (const [index, port] of ports.entries()) {
    const healthPort = freePort();
    const server = run(
      `s${index}`,
      ...["server", ...state, `--server-id=s${index}`, "--discovery"],
      ...[`--discovery-listen=127.0.0.1:${port}`, "--handover-socket=none"],
      `--state-dir=${workspace.path(`s${index}`)}`,
      `--uds-name=${workspace.path(`s${index}.sock`)}`,
      `--agent-port=${index === 0 ? agentPort : freePort()}`,
      // Where nobody listens: no agent finds the second one.
      `--advertise-address=${index === 0 ? address : "127.0.0.1:1"}`,
      ...["--agent-bind-address=127.0.0.1", "--admin-port=0"],
      ...[`--health-port=${healthPort}`, "--health-bind-address=127.0.0.1"],
    );
    await server.untilReady(`http://127.0.0.1:${healthPort}/healthz`);
    servers.push(server);
  }
  const own = `--state-dir=${workspace.path("token")}`;
  run(
    "agent",
    ...["agent", `--server=${address}`, "--node=edge-1"],
    `--join=${await tokenFor(address, [...state, own])}`,
    `--state-dir=${workspace.path("agent")}`,
    ...["--announce=web:80=127.0.0.1:8080", "--handover-socket=none"],
    ...["--health-server-host=127.0.0.1", "--health-server-port=0"],
    "--admin-server-port=0",
  );
  for (const port of ports) {
    await eventually("it is told", async () => await healthAt(port) === "1");
  }
  await servers[0]!.stop("SIGKILL");
  await eventually(
    "it is unready",
    async () => await healthAt(ports[1]) === "2",
    GONE_MS,
  );
  assertEquals(await healthAt(ports[1]), "2");
}

export const ETCD_ANNOUNCEMENT_CASES: EtcdCases = {
  "what one server is announced, all that meet in etcd tell, and see its end":
    areMerged,
};
