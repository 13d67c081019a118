/**
 * Dials to agents that another server has, with processes: bytes, ends and policies
 * through two servers. Servers that die or stand still are faults of `lab/chaos`.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { assertEchoes } from "../support/peers/datagram_echo.ts";
import { runTunnel } from "../support/program/run.ts";
import { ForwardingServers } from "../support/rigs/forwarding_servers.ts";
import { patience } from "../support/watch/patience.ts";

const DIALS = "tunnel_server_forwarded_dials_total";

const BYTES = 3 * 1024 * 1024;

/** Bytes of which each position is another one. */
function pattern(seed: number): Uint8Array {
  const bytes = new Uint8Array(BYTES);
  for (let at = 0; at < BYTES; at++) bytes[at] = (at * 31 + (at >> 8)) ^ seed;
  return bytes;
}

/** What a program gets that is told to fail. */
async function failure(promise: Promise<unknown>): Promise<string> {
  return await promise.then(() => "no failure", (error) => String(error));
}

Deno.test("a caller gets through to an agent that another server has, byte for byte", async () => {
  await using rig = await ForwardingServers.start([[1], []]);
  const [first, second] = rig.servers;
  await rig.link("edge-7", 1);
  for (const protocol of ["grpc", "http-connect"] as FrontendProtocol[]) {
    const { caller, target } = await rig.connect({ protocol, node: "edge-7" });
    const [up, down] = [pattern(1), pattern(2)];
    caller.send(up);
    target.send(down);
    await Promise.all([target.received(BYTES), caller.received(BYTES)]);
    assertEquals(target.bytes, up);
    assertEquals(caller.bytes, down);
    // The one direction ends, and the other goes on.
    caller.finish();
    await target.ended;
    target.send("last words");
    await caller.received(BYTES + 10);
    target.finish();
    assertEquals((await caller.closed).kind, "clean", protocol);
    // A unix socket knows no resets.
    if (protocol === "http-connect") continue;
    const reset = await rig.connect({ protocol, node: "edge-7" });
    reset.target.reset("enough");
    assertEquals((await reset.caller.closed).kind, "reset", protocol);
    const hungUp = await rig.connect({ protocol, node: "edge-7" });
    hungUp.caller.reset("enough");
    assertEquals((await hungUp.target.closed).kind, "reset", protocol);
  }
  const ofFirst = `direction="to_peer",result="connected"`;
  const ofSecond = `direction="from_peer",result="connected"`;
  assertEquals(await first!.metric(DIALS, ofFirst), 4);
  assertEquals(await second!.metric(DIALS, ofSecond), 4);
  const open = "tunnel_server_forwarded_connections{";
  assertEquals(await first!.metric(open), 0);
  await first!.child.untilPrinted(/connection opened.*forwardedTo=s2/);
  await second!.child.untilPrinted(/connection opened.*by server s1/);
});

Deno.test("tunnel dial and datagrams go through two servers as through one", async () => {
  await using rig = await ForwardingServers.start([[1], []]);
  const [first] = rig.servers;
  await rig.link("edge-7", 1);
  const answered = rig.target.next().then(async (probe) => {
    await probe.ended;
    probe.send("dialed");
    probe.finish();
  });
  // For the only agent there is: the other server knows whether it is so.
  const { stdout, stderr, code } = await runTunnel(
    ["dial", rig.target.address, `--server=unix:${first!.socket}`],
  );
  await answered;
  assertEquals([stdout, code], ["dialed", 0], stderr);
  const address = { kind: "unix", path: first!.socket } as const;
  await assertEchoes({
    via: { kind: "tunnel", protocol: "grpc", address },
    node: "edge-7",
  });
});

Deno.test("a target that does not read holds its caller up, through two servers, and nobody else", async () => {
  await using rig = await ForwardingServers.start([[1], []]);
  await rig.link("edge-7", 1);
  const slow = await rig.connect({ node: "edge-7" });
  slow.target.stopReading();
  const size = 48 * 1024 * 1024;
  slow.caller.send(new Uint8Array(size).fill(7));
  // All that there is room for on the way is full when nothing more leaves.
  const left = await until(async () => {
    const before = slow.caller.queuedBytes;
    await new Promise((resolve) => setTimeout(resolve, 300));
    return before - slow.caller.queuedBytes;
  }, (moved) => moved === 0);
  assertEquals(left, 0);
  assert(
    slow.caller.queuedBytes > size / 4,
    `${slow.caller.queuedBytes} bytes`,
  );
  const other = await rig.connect({ node: "edge-7" });
  const bytes = pattern(3);
  other.caller.send(bytes);
  await other.target.received(BYTES);
  assertEquals(other.target.bytes, bytes);
  slow.target.startReading();
  slow.caller.finish();
  await slow.target.ended;
  assertEquals(slow.target.receivedBytes, size);
});

Deno.test("each server decides by its policy about the first one's caller, and writes down both", async () => {
  const rules = (port: number) => ({
    frontends: [{
      socket: "*s1.sock",
      nodes: ["edge-7"],
      allow: [`tcp:127.0.0.1:${port}`],
    }],
  });
  const folder = await Deno.makeTempDir({ prefix: "forward-" });
  try {
    const port = (address: string) => Number(address.split(":")[1]);
    const policy = `${folder}/policy.json`;
    const audit = (index: number) => `${folder}/audit-${index}.log`;
    await Deno.writeTextFile(policy, JSON.stringify(rules(1)));
    await using rig = await ForwardingServers.start([[1], []], (index) => [
      "--peer-forwarding",
      ...(index === 0 ? [] : [`--policy-file=${policy}`]),
      `--audit-log=${audit(index)}`,
    ]);
    const [first, second] = rig.servers;
    await rig.link("edge-7", 1);
    const { address } = rig.target;
    // Of the first there is no policy: what the second forbids stays forbidden.
    const target = { protocol: "tcp", address };
    const denied = await failure(
      first!.dial("grpc", { target, node: "edge-7" }),
    );
    assertMatch(denied, /refused, no rule of the server allows it/);
    await Deno.writeTextFile(policy, JSON.stringify(rules(port(address))));
    second!.child.signal("SIGHUP");
    await second!.child.untilPrinted(/it decides about the next dials/);
    const { caller } = await rig.connect({ node: "edge-7" });
    caller.reset("done");
    await first!.child.stop("SIGTERM");
    await second!.child.stop("SIGTERM");
    const lines = await Promise.all(
      [0, 1].map(async (index) =>
        (await Deno.readTextFile(audit(index))).trim().split("\n")
          .map((line) => JSON.parse(line))
          .filter(({ event }) => event === "dial")
      ),
    );
    assertEquals(lines[0]!.map(({ forwardedTo }) => forwardedTo), ["s2", "s2"]);
    assertEquals(
      lines[1]!.map(({ decision, node, who }) => [
        decision,
        node,
        who.forwardedBy,
      ]),
      [["refused", "edge-7", "s1"], ["allowed", "edge-7", "s1"]],
    );
    assertMatch(lines[1]![1].who.socket, /s1\.sock$/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("servers that share a state know who has an agent, for nodes that dial, too", async () => {
  const folder = await Deno.makeTempDir({ prefix: "forward-" });
  const policy = `${folder}/policy.json`;
  const dials = [{ node: "edge-8", nodes: ["edge-7"], allow: ["tcp:*:*"] }];
  await Deno.writeTextFile(policy, JSON.stringify({ dials }));
  try {
    await using rig = await ForwardingServers.start(
      [[], [], []],
      // The first is in no agent's list: it says of itself nowhere to call.
      (index, { address }) => [
        "--peer-forwarding",
        `--policy-file=${policy}`,
        ...(index === 0 ? [] : [`--advertise-address=${address}`]),
      ],
    );
    const [first] = rig.servers;
    await rig.link("edge-7", 1);
    const state = await rig.join("edge-8");
    const answering = rig.target.next().then((probe) => {
      probe.send("hello, edge-8");
      probe.finish();
    });
    const dial = (node: string) =>
      runTunnel([
        ...["dial", rig.target.address, `--node=${node}`],
        ...[`--server=${first!.address}`, `--state-dir=${state}`],
      ]);
    // It is known within a second or two of the link.
    const answered = await until(
      () => dial("edge-7"),
      ({ code }) => code === 0,
    );
    assertEquals(answered.stdout, "hello, edge-8", answered.stderr);
    await answering;
    const line = /connection opened.*forwardedTo=s[23].*/;
    assertMatch(
      (await first!.child.untilPrinted(line))[0],
      /who="node edge-8"/,
    );
    // Of no server is it said that it has this one: none is asked.
    const before = await first!.metric(DIALS);
    const refused = await dial("edge-9");
    assert(refused.code !== 0);
    assertEquals(await first!.metric(DIALS), before);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

async function until<Result>(
  attempt: () => Promise<Result>,
  isGood: (result: Result) => boolean,
): Promise<Result> {
  for (const untilMs = performance.now() + patience(10_000);;) {
    const result = await attempt();
    if (isGood(result) || performance.now() > untilMs) return result;
  }
}
