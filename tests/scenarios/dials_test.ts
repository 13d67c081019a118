/**
 * Dials that are refused, that name their node, and that wait for an agent to come
 * back.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { TunnelDialError } from "../../client/dial_error.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { ProbeTarget } from "../support/peers/probe_target.ts";
import { RawCaller } from "../support/peers/raw_caller.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

const SERVER = "konnectivity_network_proxy_server_";

/** The error of a dial that must fail. */
async function refusal(dial: Promise<unknown>): Promise<TunnelDialError> {
  const outcome = await dial.then(() => "connected", (error) => error);
  assert(outcome instanceof TunnelDialError, String(outcome));
  return outcome;
}

Deno.test("CONNECT and Konnectivity's clients get the refusal, too", async () => {
  await using tunnel = await Tunnel.open();
  const sentence = "No agent available: no agent is connected (never seen)";
  const target = { protocol: "tcp", address: "10.0.0.9:80" };
  const error = await refusal(tunnel.dial("http-connect", { target }));
  assertEquals([error.reason, error.message], ["endpoint", sentence]);
  assertEquals(error.tunnelCode, "TUN501");
  const caller = await RawCaller.open(tunnel.socketPath);
  assertEquals((await caller.dial("10.0.0.9:80")).error, sentence);
  caller.close();
  const noAgent = `${SERVER}dial_failure_count{reason="no_agent"}`;
  assertEquals(await tunnel.metric(noAgent), 2);
});

Deno.test("the Tunnel-Node header of CONNECT chooses the agent", async () => {
  await using tunnel = await Tunnel.open();
  await tunnel.link({ agentId: "n7", identifiers: { host: ["Node7"] } });
  await tunnel.link({ agentId: "n8", identifiers: { host: ["node8"] } });
  const target = { protocol: "tcp", address: "127.0.0.1:1" };
  const dial = { target, node: "node9" };
  const error = await refusal(tunnel.dial("http-connect", dial));
  assertMatch(error.message, /no agent serves host=node9; never seen/);
  const pair = await tunnel.connect("http-connect", { node: "node7" });
  pair.caller.send("hello");
  await pair.target.received(5);
});

Deno.test("an agent may come, go and come back in any order", async () => {
  await using line = new ProbeTarget();
  // Cold start: the agent is there before its server.
  await using before = await Tunnel.open();
  const port = before.agentPort;
  before.server.stop("not yet");
  await before.server.finished;
  const agent = await before.agent({ serverPort: port });
  await agent.log.until(/connection refused.*trying again in \d+ ms$/);
  // Whom no server can ask for anything has nothing to wait for.
  const idle = await before.agent({ serverPort: port });
  idle.running.shutdown();
  await idle.running.finished;
  assertEquals(idle.log.matching(/draining/), []);
  const agents = { address: { hostname: "127.0.0.1", port } };
  await using tunnel = await Tunnel.open({ serverAgents: agents });
  await agent.log.until(/^linked to server$/);
  const target = { protocol: "tcp", address: line.address };
  const caller = new ConduitProbe(await tunnel.dial("grpc", { target }));
  caller.send("hello");
  await (await line.next()).received(5);
});
