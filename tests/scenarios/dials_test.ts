/**
 * Dials that come to nothing: lost, cancelled, refused; and two agents that say
 * they are the same one.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { TunnelDialError } from "../../client/dial_error.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import type { Carrier } from "../../proto/link/link.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { ProbeTarget, SilentTarget } from "../support/peers/probe_target.ts";
import { RawCaller } from "../support/peers/raw_caller.ts";
import {
  eventually,
  metricAt,
  Tunnel,
} from "../support/rigs/tunnel_harness.ts";
import { patience } from "../support/watch/patience.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];
const PROTOCOLS: readonly FrontendProtocol[] = ["grpc", "http-connect"];
const SERVER = "konnectivity_network_proxy_server_";
const AGENT = "konnectivity_network_proxy_agent_";

/** The error of a dial that must fail. */
async function refusal(dial: Promise<unknown>): Promise<TunnelDialError> {
  const outcome = await dial.then(() => "connected", (error) => error);
  assert(outcome instanceof TunnelDialError, String(outcome));
  return outcome;
}

/** Everything that may be left over, of both ends. */
async function leftovers(tunnel: Tunnel): Promise<Record<string, number>> {
  const agent = tunnel.agents[0]!.running.addresses.health;
  return {
    pending: await tunnel.metric(`${SERVER}pending_backend_dials`),
    established: await tunnel.metric(`${SERVER}established_connections`),
    http: await tunnel.metric(`${SERVER}http_connections`),
    endpoints: await metricAt(agent, `${AGENT}open_endpoint_connections`),
  };
}

const NOTHING = { pending: 0, established: 0, http: 0, endpoints: 0 };

for (const carrier of CARRIERS) {
  for (const protocol of PROTOCOLS) {
    Deno.test(`${carrier}, ${protocol}: an agent that dies during a dial fails it within a second`, async () => {
      await using tunnel = await Tunnel.linked(carrier);
      const silent = await SilentTarget.open();
      const target = { protocol: "tcp", address: silent.address };
      const failed = refusal(tunnel.dial(protocol, { target }));
      await eventually(
        "the dial is under way",
        async () => await tunnel.metric(`${SERVER}pending_backend_dials`) === 1,
      );
      const cutMs = performance.now();
      tunnel.cut();
      const error = await failed;
      assert(performance.now() - cutMs < patience(1_000));
      assertMatch(
        error.message,
        /^Cannot dial 127\.0\.0\.1:\d+: the link to agent agent-1 \(127\.0\.0\.1:\d+\) was lost: ./,
      );
      silent.close();
    });

    Deno.test(`${carrier}, ${protocol}: 50 cancelled dials leave nothing behind`, async () => {
      await using tunnel = await Tunnel.open();
      // So long that what is seen to go has been given up, not timed out.
      await tunnel.link({ carrier, dials: { timeoutMs: 60_000 } });
      const silent = await SilentTarget.open();
      const target = { protocol: "tcp", address: silent.address };
      const abort = new AbortController();
      const { signal } = abort;
      const failed = Array.from(
        { length: 50 },
        () => refusal(tunnel.dial(protocol, { target, signal })),
      );
      await eventually(
        "50 dials are under way",
        async () =>
          await tunnel.metric(`${SERVER}pending_backend_dials`) === 50,
      );
      await eventually("the agent dials", () => silent.waiting === 50);
      abort.abort();
      for (const { reason } of await Promise.all(failed)) {
        assertEquals(reason, "context");
      }
      await eventually(
        "nothing is left",
        async () =>
          JSON.stringify(await leftovers(tunnel)) === JSON.stringify(NOTHING),
      );
      await eventually("no dial goes on", () => silent.waiting === 0);
      const cancelled = `${SERVER}dial_failure_count{reason="frontend_close"}`;
      assertEquals(await tunnel.metric(cancelled), 50);
      const pair = await tunnel.connect(protocol);
      pair.caller.send("still works");
      await pair.target.received(11);
      silent.close();
    });

    Deno.test(`${carrier}, ${protocol}: 50 dials cancelled as they succeed leave nothing behind`, async () => {
      await using tunnel = await Tunnel.linked(carrier);
      const { address } = tunnel.target;
      await Promise.all(Array.from({ length: 50 }, async (_, index) => {
        const abort = new AbortController();
        const dialing = tunnel.dial(protocol, {
          target: { protocol: "tcp", address },
          signal: abort.signal,
        });
        // At a different point of its way each time.
        for (let turn = 0; turn < index; turn++) await Promise.resolve();
        abort.abort();
        await dialing.then((late) => late.reset("too late"), () => {});
      }));
      await eventually(
        "nothing is left",
        async () =>
          JSON.stringify(await leftovers(tunnel)) === JSON.stringify(NOTHING),
      );
    });
  }
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
