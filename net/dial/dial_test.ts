import { assert, assertEquals, assertRejects } from "@std/assert";
import { DialError } from "../../proto/peer/dial_error.ts";
import { Crowd } from "../../tests/support/peers/crowd.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { Listener, readToEnd } from "../../tests/support/peers/sockets.ts";
import { openLibc } from "../libc/libc.ts";
import { dialAddress, type DialLimits, dialTarget } from "./dial.ts";
import { type RuleDecision, RuleSet } from "../../policy/rule_set.ts";
import { LookupError, type Resolver } from "../names/resolver.ts";

const text = new TextEncoder();

Deno.test("TCP is dialed by address and by name", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  for (const host of ["127.0.0.1", "localhost", "node7.test", ""]) {
    const [conduit, accepted] = await Promise.all([
      dialTarget({ protocol: "tcp", address: `${host}:${port}` }, {
        resolver: host === "node7.test" ? answering(["127.0.0.1"]) : undefined!,
      }),
      listener.accept(),
    ]);
    const received = new Listener(conduit);
    conduit.write(text.encode(host));
    conduit.end();
    assertEquals(await readToEnd(accepted), text.encode(host));
    accepted.close();
    assertEquals(await received.closed(), { kind: "clean" });
  }
});

Deno.test("all addresses of a name are tried in turn", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const conduit = await dialTarget(
    { protocol: "tcp", address: `node7.test:${port}` },
    // Nobody listens on the first two.
    { resolver: answering(["127.0.0.3", "::1", "127.0.0.1"]) },
  );
  const received = new Listener(conduit);
  conduit.reset("done");
  await received.closed();
});

const REFUSALS: readonly [protocol: string, address: string, text: string][] = [
  ["tcp", "127.0.0.1:1", "dial tcp 127.0.0.1:1: connect: connection refused"],
  ["tcp", "127.0.0.1:0", "dial tcp 127.0.0.1:0: connect: connection refused"],
  ["tcp", "[::1]:1", "dial tcp [::1]:1: connect: connection refused"],
  ["tcp", "nope.invalid:80", "dial tcp: lookup nope.invalid: no such host"],
  ["udp", "nope.invalid:80", "dial udp: lookup nope.invalid: no such host"],
  ["tcp", "127.0.0.1", "dial tcp: address 127.0.0.1: missing port in address"],
  ["tcp", "::1", "dial tcp: address ::1: too many colons in address"],
  ["tcp", "127.0.0.1:70000", "dial tcp: address 70000: invalid port"],
  ["tcp", "127.0.0.1:spdy", "dial tcp: address spdy: invalid port"],
  ["udp", "127.0.0.1:http", "dial udp: address http: invalid port"],
  ["sctp", "127.0.0.1:1", "dial sctp: unknown network sctp"],
];

for (const [protocol, address, message] of REFUSALS) {
  Deno.test(`${protocol} ${address} fails in Go's words`, async () => {
    const error = await assertRejects(
      () => dialTarget({ protocol, address }),
      DialError,
    );
    assertEquals(error.message, message);
    assertEquals(error.reason, "endpoint");
  });
}

for (const name of Object.getOwnPropertyNames(Object.prototype)) {
  Deno.test(`a network by the name of "${name}" is unknown, and refused by rules`, async () => {
    const decisions: RuleDecision[] = [];
    const error = await assertRejects(
      () =>
        dialTarget({ protocol: name, address: "127.0.0.1:7001" }, {
          rules: new RuleSet({ allow: [], deny: [] }),
          onDecision: (decision) => decisions.push(decision),
        }),
      DialError,
    );
    assertEquals(error.message, `dial ${name}: unknown network ${name}`);
    assertEquals(decisions.map(({ isAllowed }) => isAllowed), [false]);
  });
}

Deno.test("a network's name is repeated in part", async () => {
  const error = await assertRejects(
    () => dialTarget({ protocol: "x".repeat(60_000), address: "a:1" }),
    DialError,
  );
  assert(error.message.length < 200);
});

Deno.test("a resolver that fails is no such host, with its reason", async () => {
  const error = await assertRejects(
    () =>
      dialTarget({ protocol: "tcp", address: "node7:80" }, {
        resolver: {
          lookup: (host) => Promise.reject(new LookupError(host, "EAI_AGAIN")),
        },
      }),
    DialError,
  );
  assertEquals(
    error.message,
    "dial tcp: lookup node7: no such host (EAI_AGAIN)",
  );
});

Deno.test("a lookup that takes too long is a timeout", async () => {
  const error = await assertRejects(
    () =>
      dialTarget({ protocol: "tcp", address: "node7:80" }, {
        resolver: silent,
        timeoutMs: 5,
      }),
    DialError,
  );
  assertEquals(error.message, "dial tcp: lookup node7: i/o timeout");
  assertEquals(error.reason, "timeout");
});

Deno.test("a dial can be given up", async () => {
  const controller = new AbortController();
  const dialing = dialTarget({ protocol: "tcp", address: "node7:80" }, {
    resolver: silent,
    signal: controller.signal,
  });
  controller.abort();
  const error = await assertRejects(() => dialing, DialError);
  assertEquals(error.reason, "cancelled");
});

Deno.test("a dial that was given up before it began does nothing", async () => {
  const error = await assertRejects(
    () =>
      dialTarget({ protocol: "tcp", address: "127.0.0.1:1" }, {
        signal: AbortSignal.abort(),
      }),
    DialError,
  );
  assertEquals(error.reason, "cancelled");
});

const withLibc = { ignore: openLibc() === undefined };

Deno.test(
  "what is connected at once needs no deadline, and is no promise",
  withLibc,
  async () => {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const timers = new FakeTimers();
    const to = listener.addr as Deno.NetAddr;
    const { signal } = new AbortController();
    const conduit = dialAddress(to, { timers, signal });
    assert(!(conduit instanceof Promise));
    assertEquals(timers.pendingCount, 0);
    const received = new Listener(conduit);
    (await listener.accept()).close();
    await received.until(() => received.ended);
    conduit.end();
    assertEquals(await received.closed(), { kind: "clean" });
  },
);

Deno.test(
  "what takes time has a deadline, and can be given up",
  withLibc,
  async () => {
    using crowd = new Crowd();
    const timers = new FakeTimers();
    const dial = async (limits: DialLimits) =>
      await dialAddress(crowd.address, { timers, ...limits });
    const late = dial({ timeoutMs: 250 });
    timers.advance(250);
    const { hostname, port } = crowd.address;
    const timeout = await assertRejects(() => late, DialError);
    assertEquals(timeout.message, `dial tcp ${hostname}:${port}: i/o timeout`);
    assertEquals(timeout.reason, "timeout");
    const controller = new AbortController();
    const given = dial({ signal: controller.signal });
    controller.abort();
    const cancelled = await assertRejects(() => given, DialError);
    assertEquals(cancelled.reason, "cancelled");
    const own = new AbortController();
    const reported = dial({ controller: own });
    own.abort(new DialError("cancelled", "the caller gave up"));
    await assertRejects(() => reported, DialError, "the caller gave up");
    assertEquals(timers.pendingCount, 0);
  },
);

Deno.test("unix sockets are dialed only where allowed", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/target.sock`;
  using listener = Deno.listen({ transport: "unix", path });
  const target = { protocol: "unix", address: path };
  const refusal = await assertRejects(
    () => dialTarget(target, { allowUnix: [`${path}2`] }),
    DialError,
    "nor does its --allow-unix",
  );
  assertEquals(refusal.reason, "refused");
  const [conduit, accepted] = await Promise.all([
    dialTarget(target, { allowUnix: [path] }),
    listener.accept(),
  ]);
  const received = new Listener(conduit);
  accepted.close();
  await received.until(() => received.ended);
  conduit.end();
  assertEquals((await received.closed()).kind, "clean");
  listener.close();
  const gone = await assertRejects(
    () => dialTarget(target, { allowUnix: [path] }),
    DialError,
  );
  assertEquals(
    gone.message,
    `dial unix ${path}: connect: no such file or directory`,
  );
  await Deno.remove(folder, { recursive: true });
});

Deno.test("datagrams go to an address at once, unless the dial was given up before", async () => {
  const target = { protocol: "udp", address: "127.0.0.1:9" };
  const timers = new FakeTimers();
  const conduit = await dialTarget(target, { timers });
  assertEquals(conduit.datagrams, true);
  conduit.reset("done");
  const dialed = await assertRejects(
    () => dialTarget(target, { signal: AbortSignal.abort() }),
    DialError,
  );
  assertEquals(dialed.reason, "cancelled");
  const controller = new AbortController();
  controller.abort(new DialError("timeout", "too late"));
  await assertRejects(
    () => dialTarget(target, { controller }),
    DialError,
    "too late",
  );
  const during = new AbortController();
  const dialing = dialTarget(target, { signal: during.signal });
  during.abort();
  const late = await assertRejects(() => dialing, DialError);
  assertEquals(late.reason, "cancelled");
});

const silent: Resolver = { lookup: () => new Promise(() => {}) };

function answering(addresses: readonly string[]): Resolver {
  return { lookup: () => Promise.resolve(addresses) };
}
