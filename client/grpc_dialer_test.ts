import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import type { DialHandler } from "../proto/link/dial_handler.ts";
import { DialError, type DialTarget } from "../proto/peer/dial_error.ts";
import { GrpcError, StatusCode } from "../proto/grpc/status.ts";
import type { Metadata } from "../proto/grpc/metadata.ts";
import type { Timers } from "../proto/sync/clock.ts";
import { ConduitProbe } from "../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../tests/support/memory/fake_timers.ts";
import { inMemoryFolder } from "../tests/support/memory/memory_folder.ts";
import { MemoryConduit } from "../tests/support/memory/memory_conduit.ts";
import { ProxyFrontend } from "../tests/support/peers/proxy_frontend.ts";
import { TunnelDialError } from "./dial_error.ts";
import { openDialer, type TunnelDialer } from "./tunnel_dialer.ts";

const TARGET: DialTarget = { protocol: "tcp", address: "10.0.0.7:443" };

/** A frontend that connects every dial to a target in memory. */
class Targets {
  readonly asked: DialTarget[] = [];
  readonly metadata: Metadata[] = [];
  readonly early: string[] = [];
  readonly connected: ConduitProbe[] = [];
  #waiting: (() => void)[] = [];

  readonly onDial: DialHandler = (target, answer, context) => {
    this.asked.push(target);
    this.metadata.push(context.metadata);
    this.early.push(new TextDecoder().decode(context.takeEarlyData()));
    const datagrams = target.protocol === "udp";
    const [near, far] = MemoryConduit.pair({ datagrams });
    this.connected.push(new ConduitProbe(far));
    answer.connected(near);
    for (const wake of this.#waiting.splice(0)) wake();
    return { cancel() {} };
  };

  /** Resolves when `count` dials were answered. */
  async until(count: number): Promise<void> {
    while (this.connected.length < count) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

function open(
  frontend: Pick<ProxyFrontend, "path">,
  timers?: Timers,
): TunnelDialer {
  const address = { kind: "unix", path: frontend.path } as const;
  return openDialer({ kind: "tunnel", protocol: "grpc", address }, timers);
}

Deno.test("dials at once share a connection and do not mix", async () => {
  const targets = new Targets();
  await using frontend = new ProxyFrontend(targets.onDial);
  const dialer = open(frontend);
  const clients = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const address = `10.0.0.7:${index + 1}`;
      const conduit = await dialer.dial({
        target: { protocol: "tcp", address },
      });
      const probe = new ConduitProbe(conduit);
      probe.send(`to ${address}`);
      probe.finish();
      return probe;
    }),
  );
  await targets.until(20);
  for (const [index, target] of targets.connected.entries()) {
    await target.ended;
    assertEquals(target.text, `to ${targets.asked[index]!.address}`);
    target.finish();
  }
  for (const client of clients) {
    assertEquals(await client.closed, { kind: "clean" });
  }
  assertEquals(frontend.connections.length, 1);
  dialer.close();
});

Deno.test("the node and early bytes go with the dial", async () => {
  const targets = new Targets();
  await using frontend = new ProxyFrontend(targets.onDial);
  const dialer = open(frontend);
  const earlyData = new TextEncoder().encode("early, ");
  const conduit = await dialer.dial({ target: TARGET, node: "n1", earlyData });
  const client = new ConduitProbe(conduit);
  client.send("late");
  client.finish();
  const [target] = targets.connected;
  await target!.ended;
  assertEquals(targets.early[0]! + target!.text, "early, late");
  assertEquals(targets.metadata[0]!.text("tunnel-node"), "n1");
  target!.finish();
  await client.closed;
  dialer.close();
});

Deno.test("datagrams keep their borders, empty ones too", async () => {
  const targets = new Targets();
  await using frontend = new ProxyFrontend(targets.onDial);
  const dialer = open(frontend);
  const udp = { protocol: "udp", address: "10.0.0.7:53" };
  const client = new ConduitProbe(await dialer.dial({ target: udp }));
  const [target] = targets.connected;
  for (const text of ["one", "", "three"]) client.send(text);
  await target!.received(8);
  for (const text of ["", "uno", "tres"]) target!.send(text);
  await client.received(7);
  const lengths = (probe: ConduitProbe) =>
    probe.chunks.map((chunk) => chunk.length);
  assertEquals(lengths(target!), [3, 0, 5]);
  assertEquals(lengths(client), [0, 3, 4]);
  client.reset("done");
  await target!.closed;
  dialer.close();
});

Deno.test("bytes that come before anybody listens are kept", async () => {
  const targets = new Targets();
  await using frontend = new ProxyFrontend((target, answer, context) => {
    const pending = targets.onDial(target, answer, context);
    const [first, ...later] = targets.connected;
    if (later.length === 0) {
      first!.send("banner");
      first!.finish();
    }
    return pending;
  });
  const dialer = open(frontend);
  const conduit = await dialer.dial({ target: TARGET });
  // A second round trip: the banner is here by now.
  (await dialer.dial({ target: TARGET })).reset("only to wait");
  const client = new ConduitProbe(conduit);
  await client.ended;
  assertEquals(client.text, "banner");
  client.finish();
  assertEquals(await client.closed, { kind: "clean" });
  dialer.close();
});

Deno.test("after a GOAWAY the next dial connects anew, and what runs goes on", async () => {
  const targets = new Targets();
  await using frontend = new ProxyFrontend(targets.onDial);
  const dialer = open(frontend);
  const first = new ConduitProbe(await dialer.dial({ target: TARGET }));
  frontend.connections[0]!.shutdown("maintenance");
  // Heard in order: what is said behind the GOAWAY comes behind it.
  targets.connected[0]!.send("?");
  await first.received(1);
  const second = new ConduitProbe(await dialer.dial({ target: TARGET }));
  assertEquals(frontend.connections.length, 2);
  for (const probe of [first, second]) {
    probe.send("still here");
    probe.finish();
  }
  for (const target of targets.connected) {
    await target.ended;
    assertEquals(target.text, "still here");
    target.finish();
  }
  assertEquals(await first.closed, { kind: "clean" });
  assertEquals(await second.closed, { kind: "clean" });
  dialer.close();
});

Deno.test("a dial whose connection went before its answer is made again, unless it said something", async () => {
  const targets = new Targets();
  let dials = 0;
  await using frontend = new ProxyFrontend((target, answer, context) => {
    dials++;
    if (dials !== 1 && dials !== 3) {
      return targets.onDial(target, answer, context);
    }
    frontend.connections.at(-1)!.abort(2, "it was killed");
    return { cancel: () => {} };
  });
  const dialer = open(frontend);
  new ConduitProbe(await dialer.dial({ target: TARGET })).reset("done");
  assertEquals([dials, frontend.connections.length], [2, 2]);
  // It may have been heard, and must not be heard twice.
  const earlyData = new TextEncoder().encode("pay");
  const error = await assertRejects(
    () => dialer.dial({ target: TARGET, earlyData }),
    TunnelDialError,
  );
  assertEquals([error.reason, dials], ["tunnelclosed", 3]);
  dialer.close();
});

const STOPPING = new GrpcError(
  StatusCode.UNAVAILABLE,
  "the server is stopping; ask another one",
);

Deno.test("a dial that a server turned away unheard is made again, whatever it said", async () => {
  const targets = new Targets();
  let calls = 0;
  await using frontend = new ProxyFrontend(targets.onDial, {}, () => {
    if (++calls === 1) throw STOPPING;
  });
  const dialer = open(frontend);
  const earlyData = new TextEncoder().encode("pay");
  const conduit = await dialer.dial({ target: TARGET, earlyData });
  new ConduitProbe(conduit).reset("done");
  assertEquals([calls, frontend.connections.length], [2, 2]);
  dialer.close();
});

Deno.test("a server that turns everybody away is asked a few times, and no more", async () => {
  let calls = 0;
  const targets = new Targets();
  await using frontend = new ProxyFrontend(targets.onDial, {}, () => {
    calls++;
    throw STOPPING;
  });
  const dialer = open(frontend);
  await assertRejects(() => dialer.dial({ target: TARGET }), TunnelDialError);
  assertEquals(calls, 4);
  dialer.close();
});

Deno.test("a connection that broke is replaced, and its conduits are lost", async () => {
  const targets = new Targets();
  await using frontend = new ProxyFrontend(targets.onDial);
  const dialer = open(frontend);
  const first = new ConduitProbe(await dialer.dial({ target: TARGET }));
  frontend.connections[0]!.abort(2, "it crashed");
  assertEquals((await first.closed).kind, "lost");
  new ConduitProbe(await dialer.dial({ target: TARGET })).reset("done");
  assertEquals(frontend.connections.length, 2);
  dialer.close();
});

Deno.test("more calls than the server allows take a further connection", async () => {
  const targets = new Targets();
  await using frontend = new ProxyFrontend(targets.onDial, {
    maxConcurrentStreams: 2,
  });
  const dialer = open(frontend);
  const clients: ConduitProbe[] = [];
  for (let count = 0; count < 5; count++) {
    const conduit = await dialer.dial({ target: TARGET });
    clients.push(new ConduitProbe(conduit));
  }
  assertEquals(frontend.connections.length, 3);
  for (const client of clients) client.reset("done");
  dialer.close();
});

Deno.test("a refusal is reported in the words of Konnectivity's client", async () => {
  const cases = [
    ["endpoint", "endpoint"],
    ["no-agent", "endpoint"],
    ["timeout", "timeout"],
    ["dial-closed", "dialclosed"],
    ["link-lost", "tunnelclosed"],
  ] as const;
  for (const [reason, wanted] of cases) {
    await using frontend = new ProxyFrontend((_target, answer) => {
      answer.failed(new DialError(reason, "it said no"));
      return { cancel() {} };
    });
    const dialer = open(frontend);
    const error = await assertRejects(
      () => dialer.dial({ target: TARGET }),
      TunnelDialError,
    );
    assertEquals([error.reason, error.message], [wanted, "it said no"]);
    dialer.close();
  }
});

Deno.test("a dial that takes too long is taken back at the server", async () => {
  const timers = new FakeTimers();
  const asked = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  let dials = 0;
  await using frontend = new ProxyFrontend((_target, answer) => {
    if (dials++ !== 1) answer.failed(new DialError("endpoint", "not yet"));
    else asked.resolve();
    return { cancel: () => cancelled.resolve() };
  });
  const dialer = open(frontend, timers);
  const refused = () =>
    assertRejects(() => dialer.dial({ target: TARGET }), TunnelDialError);
  await refused();
  const dialing = dialer.dial({ target: TARGET, timeoutMs: 5_000 });
  await asked.promise;
  timers.advance(2_500);
  // This answer comes behind the one that tells that the server is there.
  await refused();
  timers.advance(2_500);
  const error = await assertRejects(() => dialing, TunnelDialError);
  assertEquals([error.reason, error.tunnelCode], ["timeout", "TUN502"]);
  assertEquals(
    error.message,
    `no answer within 5 s (grpc over unix:${frontend.path})`,
  );
  await cancelled.promise;
  dialer.close();
});

Deno.test("a server that has fallen silent is not taken for its target", async () => {
  const timers = new FakeTimers();
  const asked = Promise.withResolvers<void>();
  let dials = 0;
  await using frontend = new ProxyFrontend((_target, answer) => {
    if (dials++ === 0) answer.failed(new DialError("endpoint", "not yet"));
    else asked.resolve();
    return { cancel() {} };
  });
  const dialer = open(frontend, timers);
  await assertRejects(() => dialer.dial({ target: TARGET }), TunnelDialError);
  const dialing = dialer.dial({ target: TARGET, timeoutMs: 5_000 });
  await asked.promise;
  // In one turn, so that nothing of the server's is read.
  timers.advance(5_000);
  const { message, tunnelCode } = await assertRejects(
    () => dialing,
    TunnelDialError,
  );
  assertEquals(tunnelCode, "TUN421");
  assertStringIncludes(
    message,
    "the server says nothing: no answer within 5 s",
  );
  dialer.close();
});

Deno.test("a server that has never said anything is not taken for its target", () =>
  inMemoryFolder(async (folder) => {
    const timers = new FakeTimers();
    const path = `${folder}/frontend.sock`;
    using listener = Deno.listen({ transport: "unix", path });
    const dialer = open({ path }, timers);
    const dialing = dialer.dial({ target: TARGET, timeoutMs: 5_000 });
    using connection = await listener.accept();
    await connection.read(new Uint8Array(1));
    timers.advance(5_000);
    const error = await assertRejects(() => dialing, TunnelDialError);
    assertEquals([error.reason, error.tunnelCode], ["timeout", "TUN421"]);
    assertStringIncludes(error.message, "tunnel doctor server");
    dialer.close();
  }));

Deno.test("a dial that its caller gives up is taken back at the server", async () => {
  const asked = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  await using frontend = new ProxyFrontend(() => {
    asked.resolve();
    return { cancel: () => cancelled.resolve() };
  });
  const dialer = open(frontend);
  const abort = new AbortController();
  const dialing = dialer.dial({ target: TARGET, signal: abort.signal });
  await asked.promise;
  abort.abort();
  const error = await assertRejects(() => dialing, TunnelDialError);
  assertEquals(error.reason, "context");
  await cancelled.promise;
  dialer.close();
});

Deno.test("a closed dialer lets conduits go on and dials no more", async () => {
  const targets = new Targets();
  await using frontend = new ProxyFrontend(targets.onDial);
  const dialer = open(frontend);
  const client = new ConduitProbe(await dialer.dial({ target: TARGET }));
  dialer.close();
  client.send("still here");
  client.finish();
  const [target] = targets.connected;
  await target!.ended;
  assertEquals(target!.text, "still here");
  target!.finish();
  assertEquals(await client.closed, { kind: "clean" });
  await assertRejects(() => dialer.dial({ target: TARGET }), TypeError);
});
