/**
 * What becomes of sessions over UDP when endpoints come, go or die: what users
 * missed in kube-proxy for ten years, with the numbers of what they wrote.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatagramPeer } from "../../../tests/support/peers/datagrams.ts";
import { MemoryConduit } from "../../../tests/support/memory/memory_conduit.ts";
import { endpoints, ProxyRig } from "../../../tests/support/rigs/proxy_rig.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  loadOf,
  move,
  portOf,
  serveAt,
} from "../../../tests/support/peers/udp_echo.ts";
import { nextTurn, until } from "../../../tests/support/watch/event_loop.ts";
import { REFUSED_REASON } from "../../../proto/transfer/conduit.ts";
import { GRACE_MS } from "./udp_sessions.ts";

Deno.test("an endpoint that stays keeps its sessions, whatever else changes", async () => {
  await using rig = new ProxyRig();
  await using a = await DatagramPeer.echo("a:");
  await using b = await DatagramPeer.echo("b:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [a.port]);
  assertEquals(await client.ask("1", port), "a:1");
  move(rig, [b.port, a.port]);
  move(rig, [a.port]);
  assertEquals(await client.ask("2", port), "a:2");
  assertEquals(portOf(rig).counts.accepted, 1);
});

Deno.test("an endpoint that terminates is left, if others are ready (cilium #37577)", async () => {
  await using rig = new ProxyRig();
  await using a = await DatagramPeer.echo("a:");
  await using b = await DatagramPeer.echo("b:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [a.port]);
  assertEquals(await client.ask("1", port), "a:1");
  const list = endpoints("echo", [a.port, b.port]);
  const [first, second] = list.endpoints;
  const inState = (state: "serving" | "terminating") =>
    rig.sink.add({
      endpoints: [{ ...list, endpoints: [{ ...first!, state }, second!] }],
    });
  inState("serving");
  assertEquals(await client.ask("2", port), "b:2");
});

Deno.test("answers under way still arrive, for two seconds (#45976)", async () => {
  await using rig = new ProxyRig();
  await using slow = await DatagramPeer.open();
  await using quick = await DatagramPeer.echo("quick:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [slow.port]);
  client.send("query", port);
  const query = await slow.next();
  move(rig, [quick.port]);
  rig.timers.advance(GRACE_MS - 1);
  assertEquals(await client.ask("next", port), "quick:next");
  slow.send("late", query.from.port);
  assertEquals(await client.nextText(), "late");
  rig.timers.advance(1);
  await until(() => loadOf(rig) === 1);
  slow.send("too late", query.from.port);
  assertEquals(await client.ask("again", port), "quick:again");
});

Deno.test("without endpoints there are no sessions, and later none is stuck (#48370)", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, []);
  client.send("lost", port);
  await until(() => portOf(rig).counts.refused === 1);
  assertEquals(loadOf(rig), 0);
  assertEquals(portOf(rig).lastError, "no endpoint is ready");
  move(rig, [backend.port]);
  assertEquals(await client.ask("found", port), "found");
  move(rig, []);
  client.send("lost", port);
  await until(() => portOf(rig).counts.datagramsDropped === 2);
});

Deno.test("who never pauses and never listens follows endpoints that flap (statsd)", async () => {
  await using rig = new ProxyRig();
  await using a = await DatagramPeer.open();
  await using b = await DatagramPeer.open();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [a.port]);
  let isOver = false;
  const sending = (async () => {
    while (!isOver) {
      client.send("count:1|c", port);
      await nextTurn();
    }
  })();
  for (let flap = 0; flap < 10; flap++) {
    for (const [now, before] of [[a, b], [b, a]] as const) {
      move(rig, [now.port]);
      await now.next();
      const seen = before.count;
      const received = now.count;
      await until(() => now.count >= received + 3);
      // One may have been read by the time of the change.
      assert(before.count - seen <= 1, `${before.count - seen} went astray`);
      move(rig, []);
    }
  }
  isOver = true;
  await sending;
  rig.timers.advance(GRACE_MS);
  await until(() => loadOf(rig) === 0);
  assert(portOf(rig).counts.moved >= 20);
});

Deno.test("an endpoint that refuses is left for another, and then left out", async () => {
  await using rig = new ProxyRig();
  await using live = await DatagramPeer.echo("live:");
  const port = await serveAt(rig, [freePort(), live.port]);
  for (let clients = 0; clients < 8; clients++) {
    await using client = await DatagramPeer.open();
    // What every resolver does: ask until there is an answer.
    let isAnswered = false;
    const answered = client.nextText().finally(() => isAnswered = true);
    await until(() => {
      client.send("ask", port);
      return isAnswered;
    });
    assertEquals(await answered, "live:ask");
  }
  await until(() => portOf(rig).counts.ejections === 1);
  assertMatch(portOf(rig).lastError!, /connection refused/);
  assertEquals(rig.log.matching(/is left out for a while/).length, 1);
});

Deno.test("a datagram that is refused goes to the next endpoint, although its client says nothing more", async () => {
  await using rig = new ProxyRig();
  await using live = await DatagramPeer.echo("live:");
  const port = await serveAt(rig, [freePort(), live.port]);
  for (let asked = 0; asked < 60; asked++) {
    await using client = await DatagramPeer.open();
    assertEquals(await client.ask("once", port), "live:once");
  }
  const { counts, balancer } = portOf(rig);
  assertEquals(counts.ejections, 1);
  assertEquals([counts.sessionsRefused, counts.datagramsResent], [3, 3]);
  const [dead] = balancer.backends;
  assertEquals(dead!.failuresTotal, 3);
});

Deno.test("so does one of a steady client whose endpoint dies", async () => {
  await using rig = new ProxyRig();
  const dying = await DatagramPeer.echo("a:");
  await using live = await DatagramPeer.echo("b:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [dying.port, live.port]);
  assertEquals(await client.ask("1", port), "a:1");
  await dying[Symbol.asyncDispose]();
  assertEquals(await client.ask("2", port), "b:2");
});

Deno.test("with nine of ten endpoints dead a datagram finds the tenth", async () => {
  await using rig = new ProxyRig();
  await using live = await DatagramPeer.echo("live:");
  const dead = [];
  while (dead.length < 9) dead.push(freePort());
  const port = await serveAt(rig, [...dead, live.port]);
  for (let asked = 0; asked < 20; asked++) {
    await using client = await DatagramPeer.open();
    assertEquals(await client.ask("once", port), "live:once");
  }
});

Deno.test("a datagram that everybody has refused is given up", async () => {
  await using rig = new ProxyRig();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [freePort(), freePort()]);
  client.send("x", port);
  await until(() => portOf(rig).counts.datagramsDropped === 1);
  await until(() => loadOf(rig) === 0);
  assertEquals(portOf(rig).counts.sessionsRefused, 2);
  assertEquals(portOf(rig).counts.datagramsResent, 1);
});

Deno.test("a refusal that an agent tells counts as one that is seen here", async () => {
  await using rig = new ProxyRig();
  await using live = await DatagramPeer.echo("live:");
  await using client = await DatagramPeer.open();
  rig.dialer.answers.set("127.0.0.1:9", () => {
    const [near, far] = MemoryConduit.pair({ datagrams: true });
    far.attach({
      onData: () => far.reset(REFUSED_REASON),
      onWritable() {},
      onEnd() {},
      onClose() {},
    });
    return Promise.resolve(near);
  });
  const port = await serveAt(rig, [9, live.port]);
  assertEquals(await client.ask("1", port), "live:1");
  const [far] = portOf(rig).balancer.backends;
  assertEquals(far!.failuresTotal, 1);
});

Deno.test("what waits for an endpoint that goes is sent to another one", async () => {
  await using rig = new ProxyRig();
  await using live = await DatagramPeer.echo("live:");
  await using client = await DatagramPeer.open();
  rig.dialer.hang("127.0.0.1:9");
  const port = await serveAt(rig, [9]);
  client.send("one", port);
  await rig.dialer.dialed(1);
  move(rig, [live.port]);
  assertEquals(await client.nextText(), "live:one");
  await until(() => loadOf(rig) === 1);
});

Deno.test("a conduit that is lost ends its session, and the next datagram finds another", async () => {
  await using rig = new ProxyRig();
  await using client = await DatagramPeer.open();
  const conduits: MemoryConduit[] = [];
  rig.dialer.answers.set("127.0.0.1:9", () => {
    const [near, far] = MemoryConduit.pair({ datagrams: true });
    far.attach({
      onData(bytes) {
        far.consumed(bytes.length);
        far.write(bytes);
      },
      onWritable() {},
      onEnd() {},
      onClose() {},
    });
    conduits.push(far);
    return Promise.resolve(near);
  });
  const port = await serveAt(rig, [9]);
  assertEquals(await client.ask("one", port), "one");
  conduits[0]!.reset("the agent is gone", "lost");
  await until(() => loadOf(rig) === 0);
  assertEquals(await client.ask("two", port), "two");
  assertEquals(conduits.length, 2);
});
