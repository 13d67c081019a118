/**
 * Calls between two HTTP/2 engines joined in memory: what single files cannot
 * show, that both ends of the layer agree.
 *
 * @module
 */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { enginePair } from "../../tests/support/memory/engine_pair.ts";
import { fields } from "../../tests/support/memory/fake_stream.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import type { MemoryPipe } from "../../tests/support/memory/memory_pipe.ts";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { StreamLog } from "../../tests/support/watch/stream_log.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";
import type { Connection } from "../streams/connection.ts";
import type { LocalSettings } from "../streams/settings.ts";
import type { ClientCall, MethodHandler, ServerCall } from "./call.ts";
import { type CallOptions, startCall, unaryCall } from "./client.ts";
import { MessageReader, writeMessagePrefix } from "./message_reader.ts";
import { GrpcRouter, unaryMethod } from "./server.ts";
import { GrpcError, StatusCode, statusName } from "./status.ts";

const MIB = 1024 * 1024;
const OK = { code: StatusCode.OK, message: "" };

/** A client and a server, and the wire between them. */
class World {
  readonly timers = new FakeTimers();
  readonly client: Connection;
  readonly server: Connection;
  readonly pipe: MemoryPipe;

  constructor(
    methods: Readonly<Record<string, MethodHandler>>,
    options: { prng?: Prng; serverSettings?: Partial<LocalSettings> } = {},
  ) {
    const { prng, serverSettings: settings = {} } = options;
    const clock = this.timers;
    const router = new GrpcRouter({ methods, timers: clock });
    const { client, server, pipe } = enginePair({
      client: { clock },
      server: { clock, settings },
      ...(prng && { prng }),
    });
    server.serve = (stream) => router.accept(stream);
    this.client = client.connection;
    this.server = server.connection;
    this.pipe = pipe;
  }

  /** Starts a call that writes down what happens. */
  call(path: string, options: Partial<CallOptions> = {}): LoggedCall {
    return new LoggedCall(this, path, options);
  }

  /** No end has forgotten to let go of a stream. */
  assertNothingLeft(): void {
    this.pipe.settle();
    assertEquals([this.client.openStreams, this.server.openStreams], [0, 0]);
    assertEquals(this.timers.pendingCount, 0);
  }
}

class LoggedCall {
  readonly call: ClientCall;
  readonly messages: Uint8Array[] = [];
  readonly statuses: string[] = [];
  /** Bytes that were not given back. */
  owedBytes = 0;
  consumes = true;
  onRoom = () => {};

  constructor(world: World, path: string, options: Partial<CallOptions>) {
    const reader = new MessageReader({
      messageBytesMax: 8 * MIB,
      onMessage: (message) => this.messages.push(message),
    });
    this.call = startCall(world.client, {
      path,
      authority: "test",
      timers: world.timers,
      ...options,
    }, {
      onMetadata() {},
      onBody: (chunk) => {
        reader.push(chunk);
        this.owedBytes += chunk.length;
        if (this.consumes) this.pay();
      },
      onWritable: () => this.onRoom(),
      onStatus: ({ code, message }, _trailers, lost) =>
        this.statuses.push(
          `${statusName(code)} ${message}${lost ? " (lost)" : ""}`,
        ),
    });
  }

  pay(): void {
    this.call.consumed(this.owedBytes);
    this.owedBytes = 0;
  }
}

/** Echoes messages, and ends when the caller has. */
const echo: MethodHandler = (call) => {
  const reader = new MessageReader({
    messageBytesMax: 8 * MIB,
    onMessage: (message) => void call.sendMessage(message),
  });
  return {
    onBody(chunk) {
      call.consumed(chunk.length);
      reader.push(chunk);
    },
    onHalfClose: () => call.finish(OK),
    onWritable() {},
    onCancel() {},
  };
};

/** A method that only writes down what it receives. */
function quiet(
  received: string[],
  onCall: (call: ServerCall) => void = () => {},
): MethodHandler {
  return (call) => {
    onCall(call);
    return {
      onBody(chunk) {
        call.consumed(chunk.length);
        received.push("body");
      },
      onHalfClose: () => received.push("half-close"),
      onWritable: () => received.push("writable"),
      onCancel: ({ lost }) => received.push(lost ? "lost" : "cancel"),
    };
  };
}

Deno.test("calls beside each other echo every message in order, however cut", async () => {
  await forAll(15, (prng) => {
    const world = new World({ "/echo": echo }, { prng });
    const calls = Array.from({ length: 1 + prng.below(5) }, () => {
      const logged = world.call("/echo");
      const sent: Uint8Array[] = [];
      return { logged, sent };
    });
    for (let step = 0; step < 30; step++) {
      const { logged, sent } = prng.pick(calls);
      const message = prng.bytes(prng.pick([0, 1, 100, prng.below(60_000)]));
      sent.push(message.slice());
      logged.call.sendMessage(message);
      message.fill(0xee);
      if (prng.below(2) === 0) world.pipe.step();
    }
    for (const { logged } of calls) logged.call.halfClose();
    world.pipe.settle();
    for (const { logged, sent } of calls) {
      assertEquals(logged.messages, sent);
      assertEquals(logged.statuses, ["OK "]);
    }
    world.assertNothingLeft();
  });
});

Deno.test("unary calls over the peer's stream limit wait for their turn", async () => {
  const double = unaryMethod((request) =>
    Promise.resolve(Uint8Array.of(request[0]! * 2))
  );
  const world = new World({ "/double": double }, {
    serverSettings: { maxConcurrentStreams: 10 },
  });
  const answers = Array.from(
    { length: 100 },
    (_, index) =>
      unaryCall(world.client, {
        path: "/double",
        authority: "test",
        request: Uint8Array.of(index),
      }),
  );
  const all = Promise.all(answers);
  let isDone = false;
  all.then(() => isDone = true);
  while (!isDone) {
    world.pipe.settle();
    await nextTurn();
  }
  assertEquals(
    (await all).map(([byte]) => byte),
    Array.from({ length: 100 }, (_, index) => index * 2),
  );
  world.assertNothingLeft();
});

Deno.test("trailers arrive behind megabytes that a slow caller lets wait", () => {
  const world = new World({
    "/large": quiet([], (call) => {
      call.sendMessage(new Uint8Array(3 * MIB).fill(7));
      call.sendMessage(Uint8Array.of(1));
      call.finish({ code: StatusCode.ABORTED, message: "and yet" });
    }),
  });
  const logged = world.call("/large");
  logged.consumes = false;
  world.pipe.settle();
  assertEquals(logged.statuses, []);
  while (logged.statuses.length === 0) {
    assert(logged.owedBytes > 0, "nothing moves any more");
    logged.pay();
    world.pipe.settle();
  }
  assertEquals(logged.messages.map((message) => message.length), [3 * MIB, 1]);
  assertEquals(logged.statuses, ["ABORTED and yet"]);
  world.assertNothingLeft();
});

Deno.test("frames that the caller builds itself pass through, one DATA each", () => {
  const world = new World({ "/echo": echo });
  const logged = world.call("/echo");
  const head = new Uint8Array(5);
  const pump = () => {
    while (left > 0 && logged.call.room >= 5 + 10_000) {
      writeMessagePrefix(head, 10_000);
      logged.call.sendFrame(head, new Uint8Array(10_000).fill(left--));
    }
    if (left > 0) logged.call.awaitRoom();
    else logged.call.halfClose();
  };
  let left = 100;
  logged.onRoom = pump;
  pump();
  world.pipe.settle();
  assertEquals(
    logged.messages.map((message) => message[9_999]),
    Array.from({ length: 100 }, (_, index) => 100 - index),
  );
  assertEquals(logged.statuses, ["OK "]);
  world.assertNothingLeft();
});

Deno.test("an answer while the caller is still sending ends the call on both ends", () => {
  const received: string[] = [];
  let served: ServerCall | undefined;
  const world = new World({ "/m": quiet(received, (call) => served = call) });
  const logged = world.call("/m");
  logged.call.sendMessage(new Uint8Array(5 * MIB));
  world.pipe.step();
  served!.finish({ code: StatusCode.NOT_FOUND, message: "no" });
  world.assertNothingLeft();
  assertEquals(logged.statuses, ["NOT_FOUND no"]);
  assertEquals([logged.call.keptBytes, logged.call.room], [0, 0]);
  assertEquals(received.filter((what) => what !== "body"), []);
});

Deno.test("a cancelled call is a cancellation over there, kept bytes or not", () => {
  for (const bytes of [10, 5 * MIB]) {
    const received: string[] = [];
    const world = new World({ "/m": quiet(received) });
    const logged = world.call("/m");
    logged.call.sendMessage(new Uint8Array(bytes));
    world.pipe.step();
    logged.call.cancel();
    world.assertNothingLeft();
    assertEquals([received.at(-1), logged.statuses], ["cancel", []]);
  }
});

Deno.test("the callee keeps the deadline of a caller that does not", () => {
  const received: string[] = [];
  const world = new World({ "/m": quiet(received) });
  const statuses: string[] = [];
  startCall(world.client, { path: "/m", authority: "test", timeoutMs: 250 }, {
    onMetadata() {},
    onBody() {},
    onWritable() {},
    onStatus: ({ code }) => statuses.push(statusName(code)),
  });
  world.pipe.settle();
  world.timers.advance(250);
  world.assertNothingLeft();
  assertEquals([received, statuses], [["cancel"], ["DEADLINE_EXCEEDED"]]);
});

Deno.test("a broken path is a loss on both ends, never an answer", () => {
  const received: string[] = [];
  const world = new World({ "/m": quiet(received) });
  const logged = world.call("/m");
  world.pipe.settle();
  world.client.transportClosed(new Error("cable cut"));
  world.server.transportClosed(new Error("cable cut"));
  assertEquals(received, ["lost"]);
  assertEquals(logged.statuses.length, 1);
  const [status] = logged.statuses;
  assert(status!.startsWith("UNAVAILABLE") && status!.endsWith("(lost)"));
});

Deno.test("a connection that goes away finishes its calls and takes no more", async () => {
  const world = new World({ "/echo": echo });
  const logged = world.call("/echo");
  logged.call.sendMessage(Uint8Array.of(1));
  world.pipe.settle();
  world.server.shutdown("maintenance");
  world.pipe.settle();
  logged.call.sendMessage(Uint8Array.of(2));
  world.pipe.settle();
  const request = new Uint8Array(0);
  const error = await assertRejects(
    () =>
      unaryCall(world.client, { path: "/echo", authority: "test", request }),
    GrpcError,
  );
  assertEquals(error.code, StatusCode.UNAVAILABLE);
  logged.call.halfClose();
  world.assertNothingLeft();
  assertEquals(logged.messages, [Uint8Array.of(1), Uint8Array.of(2)]);
  assertEquals(logged.statuses, ["OK "]);
});

Deno.test("refused requests leave no stream behind, with a body or without", () => {
  const world = new World({ "/echo": echo });
  const heads = [
    [{ ":method": "GET", ":path": "/" }, "405"],
    [{ ":method": "POST", ":path": "/", "content-type": "text/plain" }, "415"],
    [{
      ":method": "POST",
      ":path": "/nothing",
      "content-type": "application/grpc",
    }, "200"],
  ] as const;
  for (const [head, status] of heads) {
    for (const bodyBytes of [0, 200_000]) {
      const log = new StreamLog();
      const stream = world.client.openStream(
        fields({ ":scheme": "http", ":authority": "test", ...head }),
        bodyBytes === 0,
        log,
      );
      log.stream = stream;
      if (bodyBytes > 0) stream.write(new Uint8Array(bodyBytes));
      // What is not gRPC is read to its end; a call is stopped before.
      if (bodyBytes > 0 && status !== "200") stream.end();
      world.assertNothingLeft();
      assertEquals(log.headers[0]!.value, status);
      assertEquals(log.hasEnded, true);
    }
  }
});
