/**
 * Messages as unauthenticated peers send them: huge, empty, broken.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Carrier } from "../../proto/link/link.ts";
import type { Int64 } from "../../proto/packets/packet.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import type { ScriptedCaller } from "../support/watch/packet_script.ts";
import { RawCaller } from "../support/peers/raw_caller.ts";
import { scriptedAgent } from "../support/peers/scripted_agent.ts";
import { eventually, Tunnel } from "../support/rigs/tunnel_harness.ts";
import { sameBytes } from "../../proto/bytes/byte_arrays.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];
const MIB = 1024 * 1024;

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

  Deno.test(`${carrier}: empty DATA of a caller is harmless`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    const caller = await RawCaller.open(tunnel.socketPath);
    const { connectId } = await caller.dial(tunnel.target.address);
    const target = await tunnel.target.next();
    for (const text of ["", "one", "", "", "two", ""]) {
      caller.script.data(connectId, text);
    }
    await target.received(6);
    assertEquals([target.text, target.hasEnded], ["onetwo", false]);
    caller.close();
  });

  Deno.test(`${carrier}: one empty DATA tells a Go client that the target has ended`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    const caller = await RawCaller.open(tunnel.socketPath);
    const { connectId } = await caller.dial(tunnel.target.address);
    const target = await tunnel.target.next();
    target.send("bye");
    target.finish();
    await caller.receives(/^DATA \d+ ""/);
    // Its way in goes on.
    caller.script.data(connectId, "still here");
    await target.received(10);
    const empty = caller.script.received.filter((line) =>
      /^DATA .* ""$/.test(line)
    );
    assertEquals(empty.length, 1);
    caller.script.say({ type: "CLOSE_REQ", connectId, reset: "" });
    await caller.receives(/^CLOSE_RSP/);
    assertEquals(await target.closed, { kind: "clean" });
    caller.close();
  });
}

Deno.test("a Go agent's single message of 5 MiB arrives whole", async () => {
  await using tunnel = await Tunnel.open();
  const agent = await scriptedAgent(tunnel);
  await tunnel.log.until(/^agent linked$/);
  const caller = await connectThrough(tunnel, agent, 1n << 60n);
  const sent = new Uint8Array(5 * MIB).map((_, index) => index * 7);
  agent.data(1n << 60n, sent);
  await caller.received(sent.length);
  assert(sameBytes(caller.bytes, sent));
  caller.send(sent);
  await eventually("all bytes", () => agent.bytes === sent.length);
  const pieces =
    agent.received.filter((line) => line.startsWith("DATA")).length;
  assert(pieces >= sent.length / 65_536, `ours were split in ${pieces}`);
  agent.call.cancel();
});

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
