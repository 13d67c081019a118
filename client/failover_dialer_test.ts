import { assert, assertEquals, assertRejects } from "@std/assert";
import { FROZEN_LOOK_MS, FROZEN_LOOKS } from "../platform/time/race.ts";
import { FAILED_MS } from "../net/dial/attempt_order.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import {
  ConduitProbe,
  settled,
} from "../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../tests/support/memory/memory_conduit.ts";
import { abandon } from "../proto/link/dial_handler.ts";
import { ProxyFrontend } from "../tests/support/peers/proxy_frontend.ts";
import { CertificateFiles } from "../tests/support/certificates/certificate_files.ts";
import { openDialer } from "./tunnel_dialer.ts";
import { describeFrontend, type FrontendAddress } from "./tunnel_route.ts";
import { TunnelDialError } from "./dial_error.ts";
import type { DialStarter, TunnelDial } from "./dial_starter.ts";
import { FAILOVER_SILENT_MS, FailoverDialer } from "./failover_dialer.ts";
import { patience } from "../tests/support/watch/patience.ts";

const TARGET = { protocol: "tcp", address: "10.0.0.7:443" } as const;
const EARLY: TunnelDial = {
  target: TARGET,
  earlyData: new TextEncoder().encode("hello"),
};

/** A server that does as the test says. */
class ScriptedServer implements DialStarter {
  /** Dials that wait for what the test says. */
  readonly asked: PromiseWithResolvers<Conduit>[] = [];
  readonly targets: MemoryConduit[] = [];
  /** Whether the last dial said that another server may be asked. */
  hasOthers: boolean | undefined;
  /** What was said over it, once for each time. */
  sent = 0;
  givenUp = 0;
  isAlive: boolean | undefined;
  #onSending: (() => void) | undefined;

  start(
    dial: TunnelDial,
    signal: AbortSignal,
    onSending?: () => void,
  ): Promise<Conduit> {
    const asked = Promise.withResolvers<Conduit>();
    this.asked.push(asked);
    this.hasOthers = dial.hasOthers;
    this.#onSending = () => {
      onSending?.();
      if (dial.earlyData !== undefined) this.sent++;
    };
    signal.addEventListener("abort", () => {
      if (signal.reason.message !== "") this.givenUp++;
      asked.reject(signal.reason);
    });
    return asked.promise;
  }

  suspect(): () => boolean {
    return () => this.isAlive === true;
  }

  close(): void {}

  /** The connection stands: what the caller has said leaves. */
  send(): void {
    this.#onSending!();
  }

  connect(): Conduit {
    const [near, far] = MemoryConduit.pair();
    this.targets.push(far);
    this.asked.at(-1)!.resolve(near);
    return far;
  }

  async fail(error: Error): Promise<void> {
    this.asked.at(-1)!.reject(error);
    await settled();
  }
}

function setUp(count = 2) {
  const timers = new FakeTimers();
  const servers = Array.from({ length: count }, () => new ScriptedServer());
  const dialer = new FailoverDialer(
    servers.map((starter, index) => ({ name: `s${index}:1`, starter })),
    timers,
  );
  const start = (
    dial: TunnelDial = { target: TARGET },
    signal = new AbortController().signal,
  ) => dialer.start(dial, signal);
  return {
    timers,
    dialer,
    start,
    first: servers[0]!,
    second: servers[1]!,
    servers,
  };
}

const AWAY = new TunnelDialError(
  "streamsetup",
  "Cannot connect to s0:1: connection refused",
);
const NO_AGENT = new DialError("no-agent", "No agent available: none");
const LOST = new DialError("link-lost", "the connection broke", {
  loss: "unanswered",
});
const UNPROCESSED = new DialError(
  "link-lost",
  "the server takes no more calls",
  { loss: "unprocessed" },
);

Deno.test("the first server serves, and the others are not asked", async () => {
  const { timers, start, first, second } = setUp();
  for (let count = 1; count <= 3; count++) {
    const dialing = start();
    first.connect();
    await dialing;
    assertEquals([first.asked.length, second.asked.length], [count, 0]);
  }
  assertEquals(timers.pendingCount, 0);
});

Deno.test("a server that is away is followed by the next at once, and tried last from then on", async () => {
  const { timers, start, first, second } = setUp();
  const dialing = start(EARLY);
  await first.fail(AWAY);
  second.send();
  second.connect();
  await dialing;
  for (const waitMs of [0, FAILED_MS]) {
    timers.advance(waitMs);
    const again = start();
    assertEquals(first.asked.length, 1);
    second.connect();
    await again;
  }
  // Until the other one fails.
  const back = start();
  await second.fail(AWAY);
  first.connect();
  await back;
  assertEquals([first.sent, second.sent], [0, 1]);
});

Deno.test("a server without an agent is followed by the next, and stays the first", async () => {
  for (
    const error of [
      NO_AGENT,
      new DialError("endpoint", "No agent available"),
      new DialError("link-lost", "going away", { loss: "unprocessed" }),
    ]
  ) {
    const { start, first, second } = setUp();
    const dialing = start(EARLY);
    first.send();
    await first.fail(error);
    second.send();
    second.connect();
    await dialing;
    assertEquals([first.sent, second.sent], [1, 1], error.message);
    if (error.loss !== undefined) continue;
    start();
    assertEquals(first.asked.length, 2);
  }
});

Deno.test("what a target or a policy says is final", async () => {
  for (
    const error of [
      new DialError("endpoint", "connection refused"),
      new DialError("refused", "no rule lets you"),
      new DialError("timeout", "no answer"),
    ]
  ) {
    const { start, first, second } = setUp();
    const dialing = assertRejects(() => start(), DialError, error.message);
    await first.fail(error);
    await dialing;
    assertEquals(second.asked.length, 0);
  }
});

Deno.test("a silent server is raced; it stays the first if it is alive", async () => {
  for (const isAlive of [false, true]) {
    const { timers, start, first, second } = setUp();
    first.isAlive = isAlive;
    const dialing = start();
    timers.advance(FAILOVER_SILENT_MS - 1);
    assertEquals(second.asked.length, 0);
    timers.advance(1);
    const target = new ConduitProbe(second.connect());
    const caller = new ConduitProbe(await dialing);
    caller.send("hi");
    await target.received(2);
    assertEquals([first.givenUp, timers.pendingCount], [1, 0]);
    start();
    assertEquals([first, second].map(({ asked }) => asked.length), [
      isAlive ? 2 : 1,
      isAlive ? 1 : 2,
    ]);
  }
});

Deno.test("what was said over a server that stands still is not said over another", async () => {
  const { timers, start, first, second } = setUp();
  const dialing = assertRejects(() => start(EARLY), DialError, "hangs");
  first.send();
  first.isAlive = true;
  // Its target may be slow.
  timers.advance(10 * FAILOVER_SILENT_MS);
  assertEquals(second.asked.length, 0);
  first.isAlive = false;
  timers.advance(FROZEN_LOOKS * FROZEN_LOOK_MS);
  await dialing;
  assertEquals([second.asked.length, first.givenUp], [0, 1]);
});

Deno.test("one that had no agent is asked again when the last one goes away meanwhile", async () => {
  for (const gone of [LOST, UNPROCESSED, AWAY]) {
    const { start, first, second } = setUp();
    const dialing = start(EARLY);
    await first.fail(NO_AGENT);
    if (gone === UNPROCESSED) second.send();
    await second.fail(gone);
    assertEquals([first.asked.length, second.asked.length], [2, 1]);
    first.send();
    first.connect();
    await dialing;
    assertEquals(first.sent, 1);
  }
});

Deno.test("servers are asked again once, and never what may have been heard", async () => {
  const twice = setUp();
  const failing = assertRejects(() => twice.start(EARLY), TunnelDialError);
  await twice.first.fail(UNPROCESSED);
  await twice.second.fail(LOST);
  await twice.first.fail(NO_AGENT);
  assertEquals(
    (await failing).message,
    "No agent available: none (server s0:1); the connection broke (server s1:1)",
  );
  const said = setUp();
  const heard = assertRejects(() => said.start(EARLY), DialError, "broke");
  await said.first.fail(NO_AGENT);
  said.second.send();
  await said.second.fail(LOST);
  await heard;
  const unserved = setUp();
  const refused = assertRejects(() => unserved.start(EARLY), TunnelDialError);
  await unserved.first.fail(NO_AGENT);
  await unserved.second.fail(NO_AGENT);
  await refused;
  for (const { first, second } of [said, unserved]) {
    assertEquals([first.asked.length, second.asked.length], [1, 1]);
  }
});

Deno.test("of two that are asked, what the caller has said leaves over one", async () => {
  const { timers, start, first, second } = setUp();
  const dialing = start(EARLY);
  timers.advance(FAILOVER_SILENT_MS);
  second.send();
  assertEquals(first.givenUp, 1);
  let refused: unknown;
  try {
    first.send();
  } catch (error) {
    refused = error;
  }
  assert(refused instanceof DialError);
  assertEquals([first.sent, second.sent], [0, 1]);
  // It is asked again when that came to nothing.
  await second.fail(NO_AGENT);
  assertEquals(first.asked.length, 2);
  first.send();
  first.connect();
  await dialing;
});

Deno.test("a verdict waits for an earlier server that is alive, not for a dead one", async () => {
  for (const isAlive of [true, false]) {
    const { timers, start, first, second } = setUp();
    first.isAlive = isAlive;
    const dialing = start();
    timers.advance(FAILOVER_SILENT_MS);
    const refused = new DialError("endpoint", "connection refused");
    if (isAlive) {
      await second.fail(refused);
      first.connect();
      await dialing;
    } else {
      const failing = assertRejects(() => dialing, DialError, "refused");
      await second.fail(refused);
      await failing;
    }
  }
});

Deno.test("an error names every server, each sentence once, and is bounded", async () => {
  const { start, servers } = setUp(9);
  const dialing = assertRejects(() => start(), TunnelDialError);
  await servers[0]!.fail(AWAY);
  for (const server of servers.slice(1, 3)) await server.fail(NO_AGENT);
  for (const server of servers.slice(3)) {
    await server.fail(new Error("x".repeat(10_000)));
  }
  // The last one went away: these are asked again.
  for (const server of servers.slice(1, 3)) await server.fail(NO_AGENT);
  const { reason, message } = await dialing;
  assertEquals(reason, "endpoint");
  assertEquals(
    message,
    "Cannot connect to s0:1: connection refused; " +
      "No agent available: none (server s1:1, s2:1); " +
      `${"x".repeat(300)} (server s3:1, s4:1, s5:1); and 3 more servers`,
  );
});

/** Takes connections, and says nothing. */
class Frozen implements AsyncDisposable {
  readonly folder: string = Deno.makeTempDirSync();
  readonly path: string = `${this.folder}/frozen.sock`;
  readonly #unix = Deno.listen({ transport: "unix", path: this.path });
  readonly #tcp = Deno.listen({ hostname: "127.0.0.1", port: 0 });

  get port(): number {
    return this.#tcp.addr.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unix.close();
    this.#tcp.close();
    await Deno.remove(this.folder, { recursive: true });
  }
}

Deno.test("a server that stands still behind its socket costs a second, also with early data", async () => {
  await using frozen = new Frozen();
  using files = await CertificateFiles.write();
  const targets: ConduitProbe[] = [];
  await using lively = new ProxyFrontend((_target, answer) => {
    const [near, far] = MemoryConduit.pair();
    targets.push(new ConduitProbe(far));
    answer.connected(near);
    return { cancel() {} };
  });
  const host = "127.0.0.1";
  const places: readonly FrontendAddress[] = [
    { kind: "unix", path: frozen.path },
    { kind: "tcp", host, port: frozen.port, tls: files.client },
  ];
  for (const address of places) {
    const dialer = openDialer({
      ...{ kind: "tunnel", protocol: "grpc", address },
      others: [{ kind: "unix", path: lively.path }],
    });
    for (const mostMs of [3 * FAILOVER_SILENT_MS, FAILOVER_SILENT_MS]) {
      const startedMs = performance.now();
      const conduit = await dialer.dial(EARLY);
      const tookMs = performance.now() - startedMs;
      await targets.at(-1)!.received(5);
      abandon(conduit, "the test has seen it");
      assert(
        tookMs < patience(mostMs),
        `${tookMs} ms to ${describeFrontend(address)}`,
      );
    }
    dialer.close();
  }
  assertEquals(targets.map(({ text }) => text), Array(4).fill("hello"));
});
