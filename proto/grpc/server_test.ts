import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { FakeStream, fields } from "../../tests/support/memory/fake_stream.ts";
import {
  RecordedFaults,
  slip,
} from "../../tests/support/watch/recorded_faults.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import type { StreamEvents } from "../streams/stream.ts";
import type { ServerCall, ServerCallEvents } from "./call.ts";
import { frameMessage } from "./message_reader.ts";
import { Metadata } from "./metadata.ts";
import {
  GrpcRouter,
  type GrpcRouterOptions,
  type MethodLimits,
  unaryMethod,
} from "./server.ts";
import { GrpcError, StatusCode } from "./status.ts";
import { gzipSync } from "node:zlib";
import {
  FOREIGN_BODY_BYTES_MAX,
  FOREIGN_REQUEST_WAIT_MS,
  ForeignRequest,
} from "./foreign_request.ts";

const HEAD = {
  ":method": "POST",
  ":scheme": "http",
  ":path": "/s/m",
  ":authority": "here",
  "te": "trailers",
  "content-type": "application/grpc",
};
const RESPONSE = ":status: 200\ncontent-type: application/grpc";

/** A router with one method, `/s/m`, and a request that has just arrived. */
class Scene {
  readonly stream = new FakeStream();
  readonly timers = new FakeTimers();
  readonly recorded: string[] = [];
  readonly peer: StreamEvents;
  call: ServerCall | undefined;

  constructor(
    head: Readonly<Record<string, string>> = HEAD,
    options: {
      onBody?: (chunk: Uint8Array) => void;
      onCall?: (call: ServerCall) => void;
      fallback?: NonNullable<GrpcRouterOptions["fallback"]>;
    } = {},
  ) {
    const router = new GrpcRouter({
      methods: {
        "/s/m": (call): ServerCallEvents => {
          this.call = call;
          options.onCall?.(call);
          return {
            onBody: options.onBody ??
              ((chunk) => this.recorded.push(`body ${chunk.length}`)),
            onHalfClose: () => this.recorded.push("half-close"),
            onWritable: () => this.recorded.push("writable"),
            onCancel: ({ lost, message }) =>
              this.recorded.push(`cancel ${lost} ${message}`),
          };
        },
      },
      timers: this.timers,
      ...(options.fallback === undefined ? {} : { fallback: options.fallback }),
    });
    this.peer = router.accept(this.stream).onHeaders(fields(head));
  }
}

const OK = { code: StatusCode.OK, message: "" };

Deno.test("a call is told its path, authority, metadata and deadline", () => {
  const { call, timers } = new Scene({
    ...HEAD,
    "agentid": "a",
    "grpc-timeout": "2S",
  });
  assertEquals(call?.path, "/s/m");
  assertEquals(call?.authority, "here");
  assertEquals(call?.metadata.text("agentid"), "a");
  assertEquals(call?.deadlineMs, timers.now() + 2_000);
  assertEquals(new Scene().call?.deadlineMs, Infinity);
});

Deno.test("te is not insisted on and Host stands in for :authority", () => {
  const { te: _te, ":authority": _authority, ...rest } = HEAD;
  assertEquals(new Scene({ ...rest, host: "h" }).call?.authority, "h");
});

Deno.test("the head leaves with the first message, then trailers, then a reset", () => {
  const { call, stream, peer, recorded } = new Scene();
  peer.onData(new Uint8Array(4));
  assertEquals(recorded, ["body 4"]);
  call!.sendMessage(Uint8Array.of(1));
  call!.finish(OK, new Metadata({ took: "1" }));
  assertEquals(stream.log, [
    RESPONSE,
    "data 6",
    "grpc-status: 0\ntook: 1\n;",
    "reset 0",
  ]);
});

Deno.test("no reset follows when the caller had half-closed", () => {
  const { call, stream, peer } = new Scene();
  peer.onEnd();
  call!.sendFrame(new Uint8Array(5), new Uint8Array(0));
  call!.finish(OK);
  assertEquals(stream.log, [RESPONSE, "data 5", "grpc-status: 0\n;"]);
});

Deno.test("a call that is answered without a message is trailers-only", () => {
  const { call, stream, peer } = new Scene();
  peer.onEnd();
  call!.finish({ code: StatusCode.NOT_FOUND, message: "nö" });
  assertEquals(stream.log, [
    `${RESPONSE}\ngrpc-status: 5\ngrpc-message: n%C3%B6\n;`,
  ]);
});

Deno.test("metadata can leave early, once", () => {
  const { call, stream } = new Scene();
  call!.sendMetadata(new Metadata({ serverid: "s" }));
  assertEquals(stream.log, [`${RESPONSE}\nserverid: s`]);
  assertThrows(() => call!.sendMetadata(new Metadata()), TypeError);
});

Deno.test("trailers stay behind everything that is kept", () => {
  const { call, stream, peer, recorded } = new Scene();
  stream.credit = 6;
  assertEquals(call!.sendMessage(Uint8Array.of(1, 2, 3)), false);
  call!.finish(OK);
  assertEquals(stream.log, [RESPONSE, "data 6"]);
  peer.onData(new Uint8Array(50));
  assertEquals([recorded, stream.consumedBytes], [[], 50]);
  stream.credit = 1;
  peer.onWritable();
  stream.credit = 10;
  peer.onWritable();
  assertEquals(stream.log.slice(2), [
    "data 1",
    "data 1",
    "grpc-status: 0\n;",
    "reset 0",
  ]);
  assertEquals(recorded, []);
});

Deno.test("onWritable is passed on once nothing is kept", () => {
  const { call, stream, peer, recorded } = new Scene();
  stream.credit = 6;
  call!.sendMessage(new Uint8Array(10));
  stream.credit = 2;
  peer.onWritable();
  assertEquals(recorded, []);
  stream.credit = 20;
  peer.onWritable();
  assertEquals(recorded, ["writable"]);
  assertEquals(call!.room, stream.room);
});

Deno.test("a cancelled and a lost call are told apart, and nothing can be sent", () => {
  for (const by of ["peer", "lost"] as const) {
    const { call, stream, peer, recorded, timers } = new Scene({
      ...HEAD,
      "grpc-timeout": "1S",
    });
    peer.onReset({ by, code: 8, reason: "why" });
    assertEquals(recorded, [`cancel ${by === "lost"} why`]);
    assertEquals(timers.pendingCount, 0);
    assertEquals(call!.room, 0);
    assertEquals(call!.sendMessage(new Uint8Array(1)), false);
    call!.sendMetadata(new Metadata());
    call!.finish(OK);
    call!.consumed(5);
    assertEquals([stream.log, stream.consumedBytes], [[], 0]);
  }
});

Deno.test("a call that finished is notified of no cancellation", () => {
  const { call, peer, recorded, stream } = new Scene();
  stream.credit = 5;
  call!.sendMessage(new Uint8Array(10));
  call!.finish(OK);
  peer.onReset({ by: "peer", code: 8, reason: "why" });
  assertEquals(recorded, []);
  assertThrows(() => call!.sendFrame(new Uint8Array(0), new Uint8Array(1)));
});

Deno.test("a passed deadline cancels the call and answers DEADLINE_EXCEEDED", () => {
  const { stream, timers, recorded } = new Scene({
    ...HEAD,
    "grpc-timeout": "100m",
  });
  timers.advance(99);
  assertEquals(recorded, []);
  timers.advance(1);
  assertEquals(recorded.length, 1);
  assertStringIncludes(recorded[0]!, "cancel false the deadline passed");
  assertStringIncludes(stream.log[0]!, "grpc-status: 4");
  assertEquals(stream.log[1], "reset 0");
});

Deno.test("a deadline that passes behind kept bytes resets the stream", () => {
  const { call, stream, timers, recorded } = new Scene({
    ...HEAD,
    "grpc-timeout": "100m",
  });
  stream.credit = 5;
  call!.sendMessage(new Uint8Array(10));
  call!.finish(OK);
  timers.advance(100);
  assertEquals(stream.log, [RESPONSE, "data 5", "reset 8"]);
  assertEquals(recorded, []);
});

Deno.test("a deadline beyond what timers can do sets none", () => {
  const { timers, recorded } = new Scene({
    ...HEAD,
    "grpc-timeout": "99999999H",
  });
  assertEquals([timers.pendingCount, recorded], [0, []]);
});

Deno.test("a finished call leaves no timer behind", () => {
  const { call, timers } = new Scene({ ...HEAD, "grpc-timeout": "1S" });
  assertEquals(timers.pendingCount, 1);
  call!.finish(OK);
  assertEquals(timers.pendingCount, 0);
});

Deno.test("a GrpcError of the method is the status", () => {
  const refusal = new GrpcError(StatusCode.PERMISSION_DENIED, "not you");
  const atStart = new Scene(HEAD, {
    onCall: () => {
      throw refusal;
    },
  });
  const later = new Scene(HEAD, {
    onBody: () => {
      throw refusal;
    },
  });
  later.peer.onData(new Uint8Array(1));
  for (const { stream, peer, recorded } of [atStart, later]) {
    assertStringIncludes(stream.log[0]!, "grpc-status: 7\ngrpc-message: not");
    peer.onEnd();
    peer.onReset({ by: "peer", code: 0, reason: "" });
    assertEquals(recorded, []);
  }
});

for (const entry of ["onCall", "onBody"] as const) {
  Deno.test(`a slip in ${entry} is INTERNAL to the caller, and reported`, () => {
    using recorded = new RecordedFaults();
    const { stream, peer, recorded: reported } = new Scene(HEAD, {
      [entry]: slip,
    });
    peer.onData(new Uint8Array(1));
    assertEquals(
      stream.log[0],
      `${RESPONSE}\ngrpc-status: 13\ngrpc-message: an internal error\n;`,
    );
    assertEquals(recorded.faults, ["stream: a slip"]);
    // What a method holds for its call, it has to let go of.
    const isHeld = entry === "onBody";
    assertEquals(reported, isHeld ? ["cancel false an internal error"] : []);
  });
}

Deno.test("an unknown method is UNIMPLEMENTED and named, its body stopped", () => {
  const { stream, peer } = new Scene({ ...HEAD, ":path": "/s/none" });
  assertEquals(stream.log, [
    `${RESPONSE}\ngrpc-status: 12\ngrpc-message: unknown method /s/none\n;`,
  ]);
  peer.onData(new Uint8Array(10));
  assertEquals(stream.log[1], "reset 0");
});

Deno.test("a gRPC call that is no POST is refused at once", () => {
  const { stream, call } = new Scene({ ...HEAD, ":method": "GET" });
  assertStringIncludes(stream.log[0]!, ":status: 405\nallow: POST\ngrpc-");
  assertEquals(call, undefined);
});

Deno.test("the fallback answers what is not gRPC, and only that", () => {
  const recorded: string[] = [];
  const fallback: NonNullable<GrpcRouterOptions["fallback"]> = (
    stream,
    head,
  ) => {
    recorded.push(head.map(({ value }) => value).join(" "));
    return {
      onHeaders: () => void recorded.push("headers"),
      onData: (chunk) => stream.consumed(chunk.length),
      onTrailers: () => recorded.push("trailers"),
      onEnd: () => recorded.push("end"),
      onWritable: () => recorded.push("writable"),
      onReset: () => recorded.push("reset"),
    };
  };
  const head = { ":method": "GET", ":path": "/" };
  const { peer, stream } = new Scene(head, { fallback });
  peer.onData(new Uint8Array(3));
  peer.onTrailers([]);
  peer.onEnd();
  peer.onWritable();
  peer.onReset({ by: "peer", code: 0, reason: "" });
  assertEquals(stream.consumedBytes, 3);
  assertEquals(recorded, ["GET /", "trailers", "end", "writable", "reset"]);
  new Scene(HEAD, { fallback });
  assertEquals(recorded.length, 5);
});

Deno.test("an encoding we lack is UNIMPLEMENTED and says what we have", () => {
  const { stream } = new Scene({ ...HEAD, "grpc-encoding": "zstd" });
  assertStringIncludes(
    stream.log[0]!,
    "grpc-accept-encoding: identity,gzip\ngrpc-status: 12",
  );
  for (const encoding of ["gzip", "identity"]) {
    const scene = new Scene({ ...HEAD, "grpc-encoding": encoding });
    assertEquals(scene.stream.log, []);
  }
});

Deno.test("a head that cannot be read is refused with what was wrong", () => {
  const timeout = new Scene({ ...HEAD, "grpc-timeout": "soon" });
  assertStringIncludes(timeout.stream.log[0]!, "grpc-status: 13");
  assertStringIncludes(timeout.stream.log[0]!, "grpc-timeout");
  const binary = new Scene({ ...HEAD, "k-bin": "!!" });
  assertStringIncludes(binary.stream.log[0]!, "metadata k-bin");
});

Deno.test("names of Object's prototype are no methods", () => {
  for (const path of ["constructor", "__proto__", "/constructor"]) {
    const { stream } = new Scene({ ...HEAD, ":path": path });
    assertStringIncludes(stream.log[0]!, "grpc-status: 12");
  }
});

Deno.test("a method may send its whole answer before it returns", () => {
  const { stream } = new Scene(HEAD, {
    onCall: (call) => {
      call.sendMessage(frameMessage(new Uint8Array(0)));
      call.finish(OK);
    },
  });
  assertEquals(stream.log.length, 4);
});

Deno.test("room is asked for only when it can be used", () => {
  const { call, stream, peer } = new Scene();
  call!.awaitRoom();
  assertEquals(stream.isAwaitingRoom, true);
  stream.credit = 5;
  call!.sendMessage(new Uint8Array(4));
  stream.isAwaitingRoom = false;
  call!.awaitRoom();
  assertEquals(stream.isAwaitingRoom, false, "kept bytes have asked");
  stream.credit = 100;
  peer.onWritable();
  call!.finish(OK);
  call!.awaitRoom();
  assertEquals(stream.isAwaitingRoom, false, "nothing is left to say");
});

type Handler = (request: Uint8Array, call: ServerCall) => Promise<Uint8Array>;

const ECHO: Handler = (request) => Promise.resolve(request);

function ask(
  handler: Handler,
  bodies: readonly Uint8Array[],
  options: { limits?: MethodLimits; encoding?: string } = {},
): { stream: FakeStream; peer: StreamEvents } {
  const stream = new FakeStream();
  const router = new GrpcRouter({
    methods: { "/s/m": unaryMethod(handler, options.limits) },
    timers: new FakeTimers(),
  });
  const peer = router.accept(stream).onHeaders(fields({
    ":method": "POST",
    ":path": "/s/m",
    "content-type": "application/grpc",
    "grpc-encoding": options.encoding ?? "identity",
  }));
  for (const body of bodies) peer.onData(body);
  peer.onEnd();
  return { stream, peer };
}

/** Lets the handler's promise come out. */
const settled = () => new Promise((done) => setTimeout(done, 0));

async function statusOf(stream: FakeStream): Promise<string> {
  await settled();
  return /grpc-status: (\d+)/.exec(stream.log.join("\n"))?.[1] ?? "none";
}

Deno.test("one message in, one message out, credit given back", async () => {
  const body = frameMessage(Uint8Array.of(1, 2, 3));
  const { stream } = ask(ECHO, [body.subarray(0, 4), body.subarray(4)]);
  assertEquals(await statusOf(stream), "0");
  assertEquals(stream.body, [...body]);
  assertEquals(stream.consumedBytes, body.length);
});

Deno.test("a request in gzip is unfolded", async () => {
  const body = frameMessage(new Uint8Array(gzipSync(Uint8Array.of(1, 2))));
  body[0] = 1;
  const { stream } = ask(ECHO, [body], { encoding: "gzip" });
  await settled();
  assertEquals(stream.body, [...frameMessage(Uint8Array.of(1, 2))]);
});

Deno.test("no message, two messages, half or too large a one are refused", async () => {
  const one = frameMessage(Uint8Array.of(1, 2));
  const cases = [
    [[], StatusCode.UNIMPLEMENTED],
    [[one, one], StatusCode.UNIMPLEMENTED],
    [[one.subarray(0, 6)], StatusCode.INTERNAL],
    [[frameMessage(new Uint8Array(11))], StatusCode.RESOURCE_EXHAUSTED],
  ] as const;
  for (const [bodies, code] of cases) {
    let isCalled = false;
    const handler: Handler = (request) => {
      isCalled = true;
      return ECHO(request, undefined!);
    };
    const { stream } = ask(handler, bodies, {
      limits: { messageBytesMax: 10 },
    });
    assertEquals(await statusOf(stream), String(code));
    assertEquals([isCalled, stream.body], [false, []]);
  }
});

Deno.test("a GrpcError is the call's status", async () => {
  const { stream } = ask(
    () => Promise.reject(new GrpcError(StatusCode.NOT_FOUND, "nowhere")),
    [frameMessage(new Uint8Array(0))],
  );
  assertEquals(await statusOf(stream), "5");
  assertStringIncludes(stream.log[0]!, "grpc-message: nowhere");
});

Deno.test("a slip is INTERNAL to the caller, and reported to us", async () => {
  using recorded = new RecordedFaults();
  const { stream } = ask(
    () => Promise.reject(new TypeError("secret detail")),
    [frameMessage(new Uint8Array(0))],
  );
  assertEquals(await statusOf(stream), "13");
  assertEquals(stream.log.join().includes("secret"), false);
  assertEquals(recorded.faults, ["stream: secret detail"]);
});

Deno.test("the answer to a caller that has gone is dropped", async () => {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  const { stream, peer } = ask(
    () => promise,
    [frameMessage(new Uint8Array(0))],
  );
  peer.onReset({ by: "peer", code: 8, reason: "" });
  resolve(new Uint8Array(5));
  await settled();
  assertEquals(stream.log, []);
});

/** A request that has just arrived. */
function scene(head: Readonly<Record<string, string>>) {
  const stream = new FakeStream();
  const timers = new FakeTimers();
  const request = new ForeignRequest(stream, fields(head), timers);
  return { stream, timers, request };
}

const POST = { ":method": "POST", ":path": "/", "content-type": "text/plain" };

const bodyOf = (stream: FakeStream) =>
  new TextDecoder().decode(Uint8Array.from(stream.body));

Deno.test("a request is credited, read to its end and answered in words", () => {
  const { stream, timers, request } = scene(POST);
  request.onData(new Uint8Array(300_000));
  assertEquals(stream.consumedBytes, 300_000);
  assertEquals(stream.log, []);
  request.onEnd();
  assertStringIncludes(
    stream.log[0]!,
    ":status: 415\ncontent-type: text/plain",
  );
  assertStringIncludes(
    stream.log[0]!,
    `content-length: ${stream.body.length}`,
  );
  assertStringIncludes(bodyOf(stream), "This port serves gRPC");
  assertStringIncludes(bodyOf(stream), "content-type text/plain");
  assertEquals(stream.log.at(-1), "end");
  assertEquals(timers.pendingCount, 0);
});

Deno.test("other methods are 405, and HEAD gets no body", () => {
  for (const method of ["GET", "PUT", "HEAD"]) {
    const { stream, request } = scene({ ":method": method, ":path": "/" });
    request.onEnd();
    assertStringIncludes(stream.log[0]!, ":status: 405\nallow: POST");
    assertEquals(stream.log[0]!.endsWith("\n;"), method === "HEAD");
    assertEquals(stream.body.length === 0, method === "HEAD");
  }
});

Deno.test("the answer keeps to the client's window", () => {
  const { stream, request } = scene(POST);
  stream.credit = 0;
  request.onEnd();
  assertEquals(stream.log.length, 1);
  assertEquals(stream.isAwaitingRoom, true);
  while (!stream.isDone) {
    stream.credit = 10;
    request.onWritable();
  }
  assertStringIncludes(bodyOf(stream), "This port serves gRPC");
});

Deno.test("a client that does not stop gets its answer and is stopped", () => {
  const { stream, timers, request } = scene(POST);
  request.onData(new Uint8Array(FOREIGN_BODY_BYTES_MAX));
  assertEquals(stream.log, []);
  request.onData(new Uint8Array(1));
  assertEquals(stream.log.slice(-2), ["end", "reset 0"]);
  assertEquals(timers.pendingCount, 0);
});

Deno.test("neither a request nor its answer may take for ever", () => {
  const unfinished = scene(POST);
  unfinished.timers.advance(FOREIGN_REQUEST_WAIT_MS);
  assertEquals(unfinished.stream.log, ["reset 8"]);
  const unread = scene(POST);
  unread.stream.credit = 0;
  unread.request.onEnd();
  unread.timers.advance(FOREIGN_REQUEST_WAIT_MS);
  assertEquals(unread.stream.log.at(-1), "reset 8");
});

Deno.test("a client that leaves leaves nothing behind", () => {
  const { stream, timers, request } = scene(POST);
  request.onReset();
  request.onWritable();
  assertEquals(stream.log, []);
  assertEquals(timers.pendingCount, 0);
});
