/**
 * Messages as unauthenticated peers send them: huge, empty, broken.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Carrier } from "../../proto/link/link.ts";
import type { Int64 } from "../../proto/packets/packet.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { ScriptedCaller } from "../support/watch/packet_script.ts";
import { RawCaller } from "../support/peers/raw_caller.ts";
import { eventually, Tunnel } from "../support/rigs/tunnel_harness.ts";
import { sameBytes } from "../../proto/bytes/byte_arrays.ts";
import { connectTls } from "../../net/dial/server_connect.ts";
import { openClientConnection } from "../../net/http2/client_connection.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { CONNECT_PATH } from "../../proto/link/capabilities.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];
const MIB = 1024 * 1024;

/** An agent of another make: calls `/AgentService/Connect`. @param fields Of its metadata. */
async function scriptedAgent(
  tunnel: Tunnel,
  fields: readonly [string, string][] = [["agentid", "go-1"]],
): Promise<ScriptedCaller> {
  const { ca, client } = await certificates();
  const metadata = new Metadata();
  for (const [name, value] of fields) metadata.add(name, value);
  return await connectTls({
    host: "127.0.0.1",
    port: tunnel.agentPort,
    credentials: { ca, ...client },
    alpn: ["h2"],
    proxyEnv: {},
    timeoutMs: 10_000,
  }).then((stream) => {
    const connection = openClientConnection(stream, {
      timers: systemTimers,
    });
    return new ScriptedCaller(connection, CONNECT_PATH, metadata);
  });
}

/** Dials through `agent`, which says yes. */
async function connectThrough(
  tunnel: Tunnel,
  agent: ScriptedCaller,
  connectId: Int64,
): Promise<ConduitProbe> {
  const seen = agent.packets.length;
  const target = { protocol: "tcp", address: "10.0.0.1:80" };
  const dialing = tunnel.dial("grpc", { target });
  await eventually("a DIAL_REQ", () => agent.packets.length > seen);
  const question = agent.packets.at(-1);
  assert(question?.type === "DIAL_REQ");
  const { random } = question;
  agent.say({ type: "DIAL_RSP", error: "", connectId, random });
  return new ConduitProbe(await dialing);
}

for (const carrier of CARRIERS) {
  Deno.test(`${carrier}: a Go client's single message of 5 MiB arrives whole`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    const caller = await RawCaller.open(tunnel.socketPath);
    const { connectId } = await caller.dial(tunnel.target.address);
    const target = await tunnel.target.next();
    const sent = new Uint8Array(5 * MIB).map((_, index) => index * 7);
    caller.script.data(connectId, sent);
    await target.received(sent.length);
    assert(sameBytes(target.bytes, sent));
    caller.close();
  });

  Deno.test(`${carrier}: a Go client's message over the limit is refused with both sizes`, async () => {
    await using tunnel = await Tunnel.open({
      server: { messageBytesMax: MIB },
    });
    await tunnel.link({ carrier });
    const caller = await RawCaller.open(tunnel.socketPath);
    const { connectId } = await caller.dial(tunnel.target.address);
    const target = await tunnel.target.next();
    caller.script.data(connectId, new Uint8Array(2 * MIB));
    await caller.receives(/^status (RESOURCE_EXHAUSTED|INVALID_ARGUMENT)/);
    const status = caller.script.received.at(-1)!;
    assert(status.includes(String(MIB)), status);
    assert((await target.closed).kind !== "clean");
    caller.close();
    // Only that call, not the server.
    const pair = await tunnel.connect("grpc");
    pair.caller.send("next");
    await pair.target.received(4);
  });
}

Deno.test("a Go agent's message over the limit ends its link, with both sizes", async () => {
  await using tunnel = await Tunnel.open({ server: { messageBytesMax: MIB } });
  const agent = await scriptedAgent(tunnel);
  await tunnel.log.until(/^agent linked$/);
  const caller = await connectThrough(tunnel, agent, 1);
  agent.data(1, new Uint8Array(2 * MIB));
  assertEquals((await caller.closed).kind, "lost");
  await eventually(
    "a status",
    () => agent.received.some((line) => line.startsWith("status")),
  );
  const status = agent.received.at(-1)!;
  assert(status.includes(String(MIB)), status);
});

Deno.test("empty DATA of a Go agent is harmless", async () => {
  await using tunnel = await Tunnel.open();
  const agent = await scriptedAgent(tunnel);
  await tunnel.log.until(/^agent linked$/);
  const caller = await connectThrough(tunnel, agent, 1);
  for (const text of ["", "one", "", "two", ""]) agent.data(1, text);
  await caller.received(6);
  assertEquals([caller.text, caller.hasEnded], ["onetwo", false]);
  agent.call.cancel();
});

Deno.test("an agent that is not what it should be is told why", async () => {
  await using tunnel = await Tunnel.open();
  const cases: readonly [[string, string][], RegExp][] = [
    [[], /^status UNKNOWN expected one agent ID in the context, got \[\]$/],
    [
      [["agentid", "x"], ["agentid", "y"]],
      /^status UNKNOWN expected one agent ID in the context, got \[x y\]$/,
    ],
    [
      [["agentid", "x"], ["agentidentifiers", "%zz=1"]],
      /^status \w+ .*identifier.*%zz/,
    ],
    [
      [["agentid", "x"], ["agentidentifiers", "a=1"], [
        "agentidentifiers",
        "b=1",
      ]],
      /^status \w+ .*identifier/,
    ],
  ];
  for (const [metadata, wanted] of cases) {
    const agent = await scriptedAgent(tunnel, metadata);
    await eventually(
      `an answer to ${JSON.stringify(metadata)}`,
      () => agent.received.length > 0,
    );
    assertMatch(agent.received[0]!, wanted);
    assertEquals(tunnel.log.matching(/^agent linked$/), []);
  }
});
