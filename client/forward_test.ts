import { assert, assertEquals, assertRejects } from "@std/assert";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { ListenError } from "../net/bind/listen_error.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import type { Timers } from "../proto/sync/clock.ts";
import { FakeTimers } from "../tests/support/memory/fake_timers.ts";
import { readToEnd, writeAll } from "../tests/support/peers/sockets.ts";
import { FakeTunnel } from "../tests/support/memory/fake_tunnel.ts";
import { nextTurn, until } from "../tests/support/watch/event_loop.ts";
import { TunnelDialError } from "./dial_error.ts";
import { EARLY_WAIT_MS } from "../net/stream/first_bytes.ts";
import {
  type Forward,
  forward,
  FORWARDED_REFUSED_PAUSE_MS,
  FORWARDED_UDP_IDLE_TIMEOUT_MS,
} from "./forward.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

interface Rig {
  readonly route: FakeTunnel;
  readonly opened: Forward;
  readonly hostname: string;
  readonly port: number;
  readonly refused: string[];
  /** The next refusal. */
  readonly refusal: () => Promise<void>;
  readonly connect: () => Promise<Deno.TcpConn>;
}

async function open(
  protocol: "tcp" | "udp",
  timers: Timers = systemTimers,
  more: { readonly earlyData?: boolean } = {},
): Promise<Rig> {
  const route = new FakeTunnel();
  const refused: string[] = [];
  let wake = () => {};
  const opened = await forward({
    hostname: "127.0.0.1",
    port: 0,
    address: "db.internal:5432",
    protocol,
    node: "n1",
    timeoutMs: 7,
    dialer: route,
    timers,
    ...more,
    onRefused: (error, caller) => {
      refused.push(`${caller.replace(/:[0-9]+$/, "")}: ${error.message}`);
      wake();
    },
    onProblem: (line) => refused.push(line),
  });
  const [hostname = "", port] = opened.listening.split(":");
  return {
    route,
    opened,
    hostname,
    port: Number(port),
    refused,
    refusal: () => new Promise((resolve) => wake = resolve),
    connect: () => Deno.connect({ hostname, port: Number(port) }),
  };
}

Deno.test("each caller gets a connection of its own, ends and all", async () => {
  const { route, opened, connect } = await open("tcp");
  const caller = await connect();
  const target = await route.target();
  target.send("banner"); // It speaks first, and need not wait.
  const buffer = new Uint8Array(100);
  assertEquals(await caller.read(buffer), 6);
  await writeAll(caller, encode("question"));
  await caller.closeWrite();
  await target.ended;
  const [dial] = route.dials;
  assertEquals(
    decode(dial!.earlyData ?? new Uint8Array()) + target.text,
    "question",
  );
  target.send("answer");
  target.finish();
  assertEquals(decode(await readToEnd(caller)), "answer");
  assertEquals(await target.closed, { kind: "clean" });
  assertEquals(
    { ...dial, earlyData: undefined },
    {
      target: { protocol: "tcp", address: "db.internal:5432" },
      node: "n1",
      oneAgent: undefined,
      timeoutMs: 7,
      earlyData: undefined,
    },
  );
  caller.close();
  await opened.close();
});

Deno.test("what a caller says at once goes with the dial", async () => {
  const timers = new FakeTimers(); // The wait for it never ends by itself.
  const { route, opened, connect } = await open("tcp", timers);
  const caller = await connect();
  await writeAll(caller, encode("GET /"));
  const target = await route.target();
  assertEquals(decode(route.dials[0]!.earlyData!), "GET /");
  await writeAll(caller, encode(" HTTP/1.0"));
  await target.received(9);
  assertEquals(target.text, " HTTP/1.0");
  target.finish();
  caller.close();
  assertEquals((await target.closed).kind, "clean");
  await opened.close();
});

Deno.test("what a caller says first waits for its connection where that is asked for", async () => {
  const { route, opened, connect } = await open("tcp", new FakeTimers(), {
    earlyData: false,
  });
  const caller = await connect();
  await writeAll(caller, encode("GET /"));
  const target = await route.target();
  await target.received(5);
  assertEquals([route.dials[0]!.earlyData, target.text], [undefined, "GET /"]);
  target.finish();
  caller.close();
  await opened.close();
});

Deno.test("a caller that says nothing is dialed for after a moment", async () => {
  const timers = new FakeTimers();
  const { route, opened, connect } = await open("tcp", timers);
  const caller = await connect();
  await until(() => timers.pendingCount > 0);
  assertEquals(route.dials.length, 0);
  timers.advance(EARLY_WAIT_MS);
  const target = await route.target();
  assertEquals(route.dials[0]!.earlyData, undefined);
  target.reset("done");
  caller.close();
  await opened.close();
});

Deno.test("a refused caller sees a reset, and one line is reported", async () => {
  // It is dialed for when it speaks: refused before, `connect` could fail.
  const { route, opened, connect, refused, refusal } = await open(
    "tcp",
    new FakeTimers(),
  );
  route.refusal = new TunnelDialError("endpoint", "no agent serves n1");
  const reported = refusal();
  const caller = await connect();
  await writeAll(caller, encode("hello"));
  await assertRejects(() => readToEnd(caller), Deno.errors.ConnectionReset);
  await reported;
  assertEquals(refused, ["127.0.0.1: no agent serves n1"]);
  caller.close();
  // And the port is still open.
  route.refusal = undefined;
  const next = await connect();
  await writeAll(next, encode("hello"));
  (await route.target()).reset("done");
  next.close();
  await opened.close();
});

Deno.test("a target's reset is the caller's", async () => {
  const { route, opened, connect } = await open("tcp");
  const caller = await connect();
  (await route.target()).reset("connection reset by peer");
  await assertRejects(() => readToEnd(caller), Deno.errors.ConnectionReset);
  caller.close();
  await opened.close();
});

Deno.test("closing lets those that are connected go on", async () => {
  const { route, opened, connect } = await open("tcp");
  const caller = await connect();
  const target = await route.target();
  let isDrained = false;
  const drained = opened.close().then(() => isDrained = true);
  await nextTurn();
  await assertRejects(connect);
  await writeAll(caller, encode("still here"));
  await target.received(10);
  assertEquals(isDrained, false);
  await caller.closeWrite();
  target.finish();
  await readToEnd(caller);
  caller.close();
  await drained;
});

Deno.test("a port in use is reported by its address", async () => {
  const { opened, port, route } = await open("tcp");
  for (const hostname of ["127.0.0.1"]) {
    const error = await assertRejects(
      () =>
        forward({
          hostname,
          port,
          address: "a:1",
          protocol: "tcp",
          dialer: route,
          onRefused: () => {},
          onProblem: () => {},
        }),
      ListenError,
    );
    assertEquals(error.problem, "in-use");
  }
  await opened.close();
});

/** A UDP caller of the forwarded port. */
function udpCaller({ hostname, port }: Rig) {
  const socket = createSocket("udp4");
  return {
    /** Resolves when it has left: what is sent later comes later. */
    say: (text: string) =>
      new Promise<void>((resolve) =>
        socket.send(text, port, hostname, () => resolve())
      ),
    received: async () => String((await once(socket, "message"))[0]),
    close: () => socket.close(),
  };
}

Deno.test("each UDP caller gets a flow, its first datagram with the dial", async () => {
  const rig = await open("udp");
  const { route } = rig;
  const callers = [udpCaller(rig), udpCaller(rig)];
  for (const [index, caller] of callers.entries()) {
    await caller.say(`query ${index}`);
    const target = await route.target();
    assertEquals(decode(route.dials[index]!.earlyData!), `query ${index}`);
    assertEquals(route.dials[index]!.target.protocol, "udp");
    const answer = caller.received();
    target.send(`answer ${index}`);
    assertEquals(await answer, `answer ${index}`);
    await caller.say("");
    await caller.say("another");
    await target.received(7);
    assertEquals(target.chunks.map((chunk) => chunk.length), [0, 7]);
  }
  assertEquals(route.dials.length, 2);
  for (const caller of callers) caller.close();
  await rig.opened.close();
});

Deno.test("a UDP caller that is silent is forgotten, and its target closed", async () => {
  const timers = new FakeTimers();
  const rig = await open("udp", timers);
  const caller = udpCaller(rig);
  await caller.say("query");
  const target = await rig.route.target();
  await until(() => timers.pendingCount > 0);
  await nextTurn();
  timers.advance(FORWARDED_UDP_IDLE_TIMEOUT_MS);
  assertEquals(await target.closed, {
    kind: "reset",
    reason: "no datagram in either direction for 60000 ms",
  });
  await caller.say("again");
  await rig.route.target();
  caller.close();
  await rig.opened.close();
});

Deno.test("a refused UDP caller is dialed for again after a pause only", async () => {
  const timers = new FakeTimers();
  const rig = await open("udp", timers);
  const { route } = rig;
  route.refusal = new TunnelDialError("endpoint", "no agent serves n1");
  const caller = udpCaller(rig);
  const reported = rig.refusal();
  await caller.say("one");
  await reported;
  const other = udpCaller(rig);
  const second = rig.refusal();
  await caller.say("two");
  await other.say("from elsewhere"); // It comes behind: "two" was heard by then.
  await second;
  assertEquals(route.dials.map((dial) => decode(dial.earlyData!)), [
    "one",
    "from elsewhere",
  ]);
  assertEquals(rig.refused.length, 2);
  timers.advance(FORWARDED_REFUSED_PAUSE_MS);
  route.refusal = undefined;
  await caller.say("three");
  await route.target();
  assert(decode(route.dials[2]!.earlyData!) === "three");
  caller.close();
  other.close();
  await rig.opened.close();
});
