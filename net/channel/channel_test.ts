import { NO_EVENTS } from "../../proto/grpc/server_call.ts";
import { openServerConnection } from "../http2/server_connection.ts";
import { assertEquals, assertRejects } from "@std/assert";
import { ErrorCode } from "../../proto/frames/wire_error.ts";
import type { ClientCall, ServerCall } from "../../proto/grpc/call.ts";
import { startCall } from "../../proto/grpc/client.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryStream } from "../../tests/support/memory/memory_stream.ts";
import { Channel, type ChannelConnection, USED_MS } from "./channel.ts";
import type { Upstream } from "./upstream.ts";

const KEEPALIVE = { intervalMs: 10_000, timeoutMs: 5_000 };
const FAILED_MS = 1_000;

class AwayError extends Error {}

/** A channel, and servers in memory that it is connected to, one by one. */
class Rig implements Disposable {
  readonly timers = new FakeTimers();
  readonly servers: Connection[] = [];
  /** Calls that servers have, in order. */
  readonly calls: ServerCall[] = [];
  readonly ends: StatusCode[] = [];
  readonly used: Connection[] = [];
  attempts = 0;
  callsMax = 100;
  isAway = false;
  /** Servers say nothing until `speak`. */
  isMute = false;
  readonly #mute: MemoryStream[] = [];
  /** Attempts wait for it. */
  gate: Promise<void> = Promise.resolve();
  readonly channel: Channel;

  constructor(isUseHeard = false) {
    const upstream: Upstream = {
      authority: "server",
      scheme: "http",
      connect: async (use, signal) => {
        this.attempts++;
        await this.gate;
        signal.throwIfAborted();
        if (this.isAway) throw new AwayError(`attempt ${this.attempts}`);
        const [near, far] = MemoryStream.pair("h2");
        if (this.isMute) this.#mute.push(far);
        else this.#serve(far);
        return use(near);
      },
      ...isUseHeard ? { used: (one) => void this.used.push(one) } : {},
    };
    const { timers } = this;
    this.channel = new Channel({
      ...{ upstream, timers, keepalive: KEEPALIVE, failedMs: FAILED_MS },
    });
  }

  call({ http2, authority }: ChannelConnection): ClientCall {
    return startCall(http2, { path: "/a/B", authority }, {
      onMetadata() {},
      onBody() {},
      onWritable() {},
      onStatus: ({ code }) => void this.ends.push(code),
    });
  }

  /** One call, over whatever connection takes it. */
  async start(): Promise<ChannelConnection> {
    const connection = await this.channel.connection();
    this.call(connection);
    await settled();
    return connection;
  }

  /** A server says goodbye because it is asked too often. */
  async calm(server: Connection): Promise<void> {
    server.abort(ErrorCode.ENHANCE_YOUR_CALM, "too many pings");
    await settled();
  }

  async speak(): Promise<void> {
    for (const stream of this.#mute.splice(0)) this.#serve(stream);
    await settled();
  }

  [Symbol.dispose](): void {
    this.channel.abort("the test is over");
    assertEquals(this.servers.length > 0, this.attempts > 0);
  }

  #serve(stream: MemoryStream): void {
    const { timers } = this;
    const handler = (call: ServerCall) => {
      this.calls.push(call);
      return NO_EVENTS;
    };
    this.servers.push(openServerConnection(stream, {
      serves: { "/a/B": handler },
      timers,
      settings: { maxConcurrentStreams: this.callsMax },
    }));
  }
}

Deno.test("a channel connects when it is used, once for all who ask", async () => {
  using rig = new Rig();
  assertEquals([rig.channel.take(), rig.attempts], [undefined, 0]);
  const [one, other] = await Promise.all([rig.start(), rig.start()]);
  assertEquals([one === other, rig.attempts], [true, 1]);
  assertEquals([one!.authority, one!.server], ["server", "10.0.0.7:4711"]);
  assertEquals(rig.channel.take(), one);
  assertEquals(rig.calls.length, 2);
});

Deno.test("a server that takes no more calls on a connection gets another one", async () => {
  using rig = new Rig();
  rig.callsMax = 1;
  const first = await rig.start();
  assertEquals(rig.channel.take(), undefined);
  const second = await rig.start();
  assertEquals([first === second, rig.attempts], [false, 2]);
  // There is room again when a call is over.
  rig.calls[0]!.finish({ code: StatusCode.OK, message: "" });
  await settled();
  assertEquals([rig.channel.take(), rig.ends], [first, [StatusCode.OK]]);
});

Deno.test("a connection that was lost is made again when it is wanted", async () => {
  using rig = new Rig();
  const first = await rig.start();
  rig.servers[0]!.abort(ErrorCode.NO_ERROR, "gone");
  await settled();
  assertEquals([first.http2.isUsable, rig.attempts], [false, 1]);
  assertEquals(await rig.start() === first, false);
  assertEquals(rig.attempts, 2);
});

Deno.test("a connection that is left serves what runs on it, and nothing more", async () => {
  using rig = new Rig();
  const first = await rig.start();
  first.leave("another server is asked");
  const second = await rig.start();
  assertEquals([first === second, rig.ends], [false, []]);
  rig.calls[0]!.finish({ code: StatusCode.OK, message: "" });
  await settled();
  assertEquals(rig.ends, [StatusCode.OK]);
});

Deno.test("a silent server is gone after the keepalive", async () => {
  using rig = new Rig();
  const { http2 } = await rig.start();
  // Nothing comes through any more.
  rig.servers[0]!.receive = () => {};
  await rig.timers.advance(KEEPALIVE.intervalMs);
  assertEquals(http2.isUsable, true);
  rig.timers.advance(KEEPALIVE.timeoutMs);
  assertEquals([http2.isUsable, rig.channel.take()], [false, undefined]);
});

Deno.test("whether a server lives is asked once for all who want to know", async () => {
  using rig = new Rig();
  rig.isMute = true;
  const { http2 } = await rig.channel.connection();
  let alive = 0;
  const ask = async () => {
    http2.whenAlive(() => alive++);
    await settled();
  };
  await ask();
  await ask();
  assertEquals(alive, 0, "it has sent nothing yet");
  await rig.speak();
  assertEquals(alive, 2);
  await ask();
  assertEquals([alive, http2.isProven], [3, false], "it is near");
  rig.servers[0]!.receive = () => {};
  await ask();
  http2.transportClosed(new Error("cut"));
  await ask();
  assertEquals(alive, 3);
});

Deno.test("a suspected server that says nothing is hung up on, one that answers is not", async () => {
  for (const isThere of [true, false]) {
    using rig = new Rig();
    const { http2 } = await rig.start();
    if (!isThere) rig.servers[0]!.receive = () => {};
    rig.timers.advance(100);
    const heard = rig.channel.suspect(2_000, "it stands still");
    // Those who ask a moment later get the same answer.
    rig.timers.advance(100);
    const again = rig.channel.suspect(2_000, "it stands still");
    await settled();
    assertEquals([heard(), again()], [isThere, isThere]);
    await rig.timers.advance(2_000);
    assertEquals(http2.isUsable, isThere);
  }
});

Deno.test("a server that is connected to after it was suspected is heard then", async () => {
  using rig = new Rig();
  const heard = rig.channel.suspect(2_000, "it stands still");
  assertEquals(heard(), false);
  await rig.start();
  assertEquals(heard(), true);
});

Deno.test("a server that is asked too often is asked less, and so is the next", async () => {
  using rig = new Rig();
  await rig.start();
  await rig.calm(rig.servers[0]!);
  await rig.start();
  const [, server] = rig.servers;
  const sinceMs = server!.lastHeardMs;
  await rig.timers.advance(KEEPALIVE.intervalMs);
  assertEquals(server!.lastHeardMs, sinceMs);
  await rig.timers.advance(KEEPALIVE.intervalMs);
  assertEquals(server!.lastHeardMs, rig.timers.now());
});

Deno.test("why there is no server is said at once for a while, then it is tried", async () => {
  using rig = new Rig();
  rig.isAway = true;
  for (let i = 0; i < 3; i++) {
    await assertRejects(() => rig.channel.connection(), AwayError, "attempt 1");
  }
  rig.timers.advance(FAILED_MS);
  await assertRejects(() => rig.channel.connection(), AwayError, "attempt 2");
  rig.isAway = false;
  rig.timers.advance(FAILED_MS);
  await rig.start();
  assertEquals(rig.attempts, 3);
});

Deno.test("a closed channel makes no connection, and what runs goes on", async () => {
  using rig = new Rig();
  const { http2 } = await rig.start();
  http2.shutdown("so that the next call wants another one");
  const gate = Promise.withResolvers<void>();
  rig.gate = gate.promise;
  const waiting = assertRejects(() => rig.channel.connection(), RangeError);
  rig.channel.close("the client is done", new RangeError("closed"));
  gate.resolve();
  await waiting;
  await assertRejects(() => rig.channel.connect(), RangeError, "closed");
  assertEquals([rig.attempts, rig.ends], [2, []]);
  rig.calls[0]!.finish({ code: StatusCode.OK, message: "" });
  await settled();
  assertEquals(rig.ends, [StatusCode.OK]);
});

Deno.test("an aborted channel ends all calls, also of connections that were left", async () => {
  using rig = new Rig();
  (await rig.start()).leave("another server is asked");
  await rig.start();
  rig.channel.abort("the client is closed");
  assertEquals(rig.ends, [StatusCode.UNAVAILABLE, StatusCode.UNAVAILABLE]);
});

Deno.test("an upstream is notified of each call whose server has answered", async () => {
  using rig = new Rig(true);
  rig.isMute = true;
  const connection = await rig.start();
  // It may still turn out that the server does not take our certificate.
  assertEquals([connection.hasAnswered, rig.used], [false, []]);
  await rig.speak();
  assertEquals(connection.hasAnswered, true);
  assertEquals(rig.used, [connection.http2]);
  rig.channel.take();
  assertEquals(rig.used.length, 2);
});

Deno.test("an upstream is notified now and then of calls that last", async () => {
  using rig = new Rig(true);
  await rig.start();
  for (let i = 2; i < 5; i++) {
    // In steps, so that keepalive is answered.
    for (let step = 0; step < 10; step++) {
      await rig.timers.advance(USED_MS / 10);
    }
    assertEquals(rig.used.length, i);
  }
  rig.calls[0]!.finish({ code: StatusCode.OK, message: "" });
  await settled();
  for (let step = 0; step < 30; step++) {
    await rig.timers.advance(USED_MS / 10);
  }
  assertEquals(rig.used.length, 4);
});
