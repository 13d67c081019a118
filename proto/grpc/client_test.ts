import {
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { FakeStream, fields } from "../../tests/support/memory/fake_stream.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ConnectionUnavailableError } from "../streams/connection_events.ts";
import type { StreamEvents } from "../streams/stream.ts";
import type { ClientCall } from "./call.ts";
import {
  type CallOptions,
  startCall,
  unaryCall,
  type UnaryCallOptions,
} from "./client.ts";
import { frameMessage } from "./message_reader.ts";
import { Metadata } from "./metadata.ts";
import { GrpcError, type StatusCode, statusName } from "./status.ts";

const HEAD = { ":status": "200", "content-type": "application/grpc" };
const OPTIONS = { path: "/s/m", authority: "there" };

/** Opens a fake stream and remembers whom to tell. */
class FakeOpener {
  readonly stream = new FakeStream();
  peer!: StreamEvents;

  openStream = (
    head: Parameters<FakeStream["sendHeaders"]>[0],
    endStream: boolean,
    events: StreamEvents,
  ): FakeStream => {
    this.peer = events;
    this.stream.sendHeaders(head, endStream);
    return this.stream;
  };
}

/** A call that has just been started. */
class Scene extends FakeOpener {
  readonly timers = new FakeTimers();
  readonly received: string[] = [];
  readonly call: ClientCall;
  trailers: Metadata | undefined;

  constructor(
    options: Partial<CallOptions> = {},
    onBody?: (chunk: Uint8Array) => void,
  ) {
    super();
    this.call = startCall(this, {
      ...OPTIONS,
      timers: this.timers,
      ...options,
    }, {
      onMetadata: (metadata) =>
        this.received.push(`metadata ${metadata.text("serverid") ?? ""}`),
      onBody: onBody ?? ((chunk) => this.received.push(`body ${chunk.length}`)),
      onWritable: () => this.received.push("writable"),
      onStatus: ({ code, message }, trailers, lost) => {
        this.trailers = trailers;
        this.received.push(
          `${statusName(code)} ${message}${lost ? " (lost)" : ""}`,
        );
      },
    });
  }

  answer(
    head: Readonly<Record<string, string>>,
    trailers?: Readonly<Record<string, string>>,
  ): this {
    this.peer.onHeaders(fields(head));
    if (trailers !== undefined) this.peer.onTrailers(fields(trailers));
    this.peer.onEnd();
    return this;
  }
}

Deno.test("the request head is what PROTOCOL-HTTP2 asks for", () => {
  const { stream } = new Scene({
    scheme: "https",
    timeoutMs: 1500,
    acceptEncoding: "identity",
    metadata: new Metadata({ authorization: "Bearer x" }),
  });
  assertEquals(
    stream.log[0],
    ":method: POST\n:scheme: https\n:path: /s/m\n:authority: there\n" +
      "te: trailers\ncontent-type: application/grpc\ngrpc-timeout: 1500m\n" +
      "grpc-accept-encoding: identity\nauthorization: Bearer x",
  );
  assertEquals(stream.sections[0]!.at(-1)!.neverIndex, true);
});

Deno.test("head, body and trailers come up, the status once and last", () => {
  const { call, stream, peer, received } = new Scene();
  call.halfClose();
  peer.onHeaders(fields({ ...HEAD, serverid: "s" }));
  peer.onData(new Uint8Array(7));
  peer.onTrailers(
    fields({ "grpc-status": "5", "grpc-message": "n%C3%B6", took: "1" }),
  );
  peer.onEnd();
  peer.onReset({ by: "lost", code: 0, reason: "late" });
  assertEquals(received, ["metadata s", "body 7", "NOT_FOUND nö"]);
  assertEquals(stream.log.slice(1), ["end"]);
});

Deno.test("trailers are metadata too", () => {
  const { trailers } = new Scene().answer(HEAD, {
    "grpc-status": "0",
    "k-bin": "AQI",
  });
  assertEquals(trailers?.all("k-bin"), [Uint8Array.of(1, 2)]);
});

Deno.test("a head with a status that is all there is, is trailers-only", () => {
  const { received, trailers } = new Scene().answer({
    ...HEAD,
    "grpc-status": "16",
    "grpc-message": "who?",
    "hint": "h",
  });
  assertEquals(received, ["UNAUTHENTICATED who?"]);
  assertEquals(trailers?.text("hint"), "h");
});

Deno.test("a head with a status and a body behind it is a head", () => {
  const { peer, received } = new Scene();
  peer.onHeaders(fields({ ...HEAD, "grpc-status": "3", serverid: "s" }));
  peer.onData(new Uint8Array(2));
  peer.onTrailers(fields({ "grpc-status": "0" }));
  peer.onEnd();
  assertEquals(received, ["metadata s", "body 2", "OK "]);
});

Deno.test("an answer before our half-close frees the stream with a reset", () => {
  const { stream } = new Scene().answer(HEAD, { "grpc-status": "0" });
  assertEquals(stream.log.slice(1), ["reset 0"]);
});

Deno.test("an answer that is not gRPC is told by its HTTP status", () => {
  const html = "text/html";
  const cases = [
    [{ ":status": "503", "content-type": html }, "UNAVAILABLE"],
    [{ ":status": "401", "content-type": html }, "UNAUTHENTICATED"],
    [{ ":status": "404" }, "UNIMPLEMENTED"],
    [{ ":status": "200", "content-type": html }, "UNKNOWN"],
    [{ ":status": "415", "content-type": html, "grpc-status": "0" }, "UNKNOWN"],
    [{ ...HEAD, ":status": "500" }, "UNKNOWN"],
  ] as const;
  for (const [head, wanted] of cases) {
    const { received, stream, peer } = new Scene();
    peer.onHeaders(fields(head));
    peer.onData(new Uint8Array(10));
    assertEquals(received.length, 1);
    assertStringIncludes(received[0]!, `${wanted} Cannot read the answer: `);
    assertStringIncludes(received[0]!, `HTTP status ${head[":status"]}`);
    assertEquals(stream.log.slice(1), ["reset 8"]);
  }
});

Deno.test("a status counts on any HTTP status when the answer is gRPC", () => {
  const { received } = new Scene().answer({
    ":status": "400",
    "content-type": "application/grpc",
    "grpc-status": "13",
  });
  assertEquals(received, ["INTERNAL "]);
});

Deno.test("an end without a status is made one", () => {
  assertStringIncludes(
    new Scene().answer(HEAD).received[1]!,
    "INTERNAL Cannot",
  );
  const { received } = new Scene().answer(HEAD, { "x": "y" });
  assertStringIncludes(received[1]!, "UNKNOWN Cannot tell how the call ended");
  assertStringIncludes(received[1]!, "(lost)");
});

Deno.test("resets and lost connections are statuses that nobody sent", () => {
  const cases = [
    ["peer", 8, "CANCELLED why (lost)"],
    ["peer", 11, "RESOURCE_EXHAUSTED why (lost)"],
    ["local", 1, "INTERNAL why (lost)"],
    ["refused", 7, "UNAVAILABLE why (lost)"],
    ["lost", 0, "UNAVAILABLE why (lost)"],
  ] as const;
  for (const [by, code, wanted] of cases) {
    const { peer, received, call, stream } = new Scene({ timeoutMs: 100 });
    peer.onReset({ by, code, reason: "why" });
    call.cancel();
    call.halfClose();
    call.consumed(5);
    assertEquals(received, [wanted]);
    assertEquals([stream.log.length, stream.consumedBytes], [1, 0]);
  }
});

Deno.test("a passed deadline gives the call up", () => {
  const { timers, received, stream } = new Scene({ timeoutMs: 100 });
  timers.advance(99);
  assertEquals(received, []);
  timers.advance(1);
  assertEquals(received, [
    "DEADLINE_EXCEEDED no answer within the deadline of 100 ms (lost)",
  ]);
  assertEquals(stream.log.slice(1), ["reset 8"]);
});

Deno.test("the callee's cancel at the deadline is the deadline", () => {
  const { timers, received, peer, call } = new Scene({ timeoutMs: 100 });
  const early = new Scene({ timeoutMs: 100 });
  early.peer.onReset({ by: "peer", code: 8, reason: "why" });
  assertEquals(early.received, ["CANCELLED why (lost)"]);
  timers.after(100, () => {});
  // Ours has not fired yet although its time has come.
  Object.assign(timers, { now: () => 1_100 });
  peer.onReset({ by: "peer", code: 8, reason: "why" });
  assertStringIncludes(received[0]!, "DEADLINE_EXCEEDED");
  call.cancel();
});

Deno.test("a call that is over leaves no timer behind", () => {
  const answered = new Scene({ timeoutMs: 100 });
  answered.answer(HEAD, { "grpc-status": "0" });
  const cancelled = new Scene({ timeoutMs: 100 });
  cancelled.call.cancel();
  for (const { timers } of [answered, cancelled]) {
    assertEquals(timers.pendingCount, 0);
  }
  assertEquals(new Scene({ timeoutMs: 2 ** 40 }).timers.pendingCount, 0);
  assertEquals(new Scene({ timeoutMs: Infinity }).timers.pendingCount, 0);
});

Deno.test("cancel resets the stream and nothing comes up any more", () => {
  const { call, peer, stream, received } = new Scene();
  peer.onHeaders(fields(HEAD));
  call.cancel();
  peer.onData(new Uint8Array(1));
  peer.onTrailers(fields({ "grpc-status": "0" }));
  peer.onEnd();
  peer.onWritable();
  assertEquals(received, ["metadata "]);
  assertEquals(stream.log.slice(1), ["reset 8"]);
  assertEquals(call.room, 0);
  assertEquals(call.sendMessage(new Uint8Array(1)), false);
});

Deno.test("half-close waits behind what is kept", () => {
  const { call, peer, stream, received } = new Scene();
  stream.credit = 5;
  assertEquals(call.sendMessage(new Uint8Array(4)), false);
  call.halfClose();
  assertEquals(stream.log.slice(1), ["data 5"]);
  assertThrows(() => call.sendMessage(new Uint8Array(1)), TypeError);
  stream.credit = 10;
  peer.onWritable();
  assertEquals(stream.log.slice(2), ["data 4", "end"]);
  assertEquals(received, []);
});

Deno.test("a GrpcError from onBody gives the call up with that status", () => {
  const { peer, stream, received } = new Scene({}, () => {
    throw new GrpcError(8, "too much");
  });
  peer.onHeaders(fields(HEAD));
  peer.onData(new Uint8Array(1));
  assertEquals(received, ["metadata ", "RESOURCE_EXHAUSTED too much (lost)"]);
  assertEquals(stream.log.slice(1), ["reset 8"]);
});

Deno.test("an answer whose encoding or metadata we cannot read is INTERNAL", () => {
  for (const extra of [{ "grpc-encoding": "zstd" }, { "k-bin": "!" }]) {
    const { peer, received } = new Scene();
    peer.onHeaders(fields({ ...HEAD, ...extra }));
    assertEquals(received.length, 1);
    assertStringIncludes(received[0]!, "INTERNAL Cannot read ");
  }
  const { received } = new Scene().answer(HEAD, {
    "grpc-status": "0",
    "k-bin": "!",
  });
  assertStringIncludes(received[1]!, "INTERNAL Cannot read metadata k-bin");
});

Deno.test("a call without a deadline does not talk of one", () => {
  for (const options of [{}, { timeoutMs: Infinity }]) {
    const { stream } = new Scene(options);
    assertEquals(stream.log[0]!.includes("grpc-timeout"), false);
  }
});

Deno.test("a call without timers only sends the callee its deadline", () => {
  const opener = new FakeOpener();
  startCall(opener, { ...OPTIONS, timeoutMs: 5 }, {
    onMetadata() {},
    onBody() {},
    onWritable() {},
    onStatus() {},
  });
  assertStringIncludes(opener.stream.log[0]!, "grpc-timeout: 5m");
});

/** Makes a unary call and plays the callee: `bodies` then `trailers`. */
function callUnary(
  bodies: readonly Uint8Array[],
  trailers: Readonly<Record<string, string>>,
  options: Partial<UnaryCallOptions> = {},
): { promise: Promise<Uint8Array>; stream: FakeStream } {
  const opener = new FakeOpener();
  const promise = unaryCall(opener, {
    ...OPTIONS,
    request: Uint8Array.of(1),
    ...options,
  });
  opener.peer.onHeaders(fields(HEAD));
  for (const body of bodies) opener.peer.onData(body);
  opener.peer.onTrailers(fields(trailers));
  opener.peer.onEnd();
  return { promise, stream: opener.stream };
}

async function rejection(promise: Promise<unknown>): Promise<StatusCode> {
  return (await assertRejects(() => promise, GrpcError)).code;
}

Deno.test("a unary call sends one message and gives one back", async () => {
  const answer = frameMessage(Uint8Array.of(7, 8));
  const { promise, stream } = callUnary([answer], { "grpc-status": "0" });
  assertEquals(await promise, Uint8Array.of(7, 8));
  assertEquals(stream.log.slice(1), ["data 6", "end"]);
  assertEquals(stream.consumedBytes, answer.length);
  assertStringIncludes(stream.log[0]!, "grpc-accept-encoding: identity,gzip");
});

Deno.test("a unary call fails with every status, also over a whole answer", async () => {
  const answer = frameMessage(Uint8Array.of(7));
  const status = { "grpc-status": "9" };
  assertEquals(await rejection(callUnary([answer], status).promise), 9);
});

Deno.test("a unary call wants exactly one message, whole and not too large", async () => {
  const ok = { "grpc-status": "0" };
  const one = frameMessage(Uint8Array.of(7, 8));
  assertEquals(await rejection(callUnary([], ok).promise), 12);
  assertEquals(await rejection(callUnary([one, one], ok).promise), 12);
  const half = callUnary([one.subarray(0, 6)], ok);
  assertEquals(await rejection(half.promise), 13);
  const large = callUnary([one], ok, { messageBytesMax: 1 });
  assertEquals(await rejection(large.promise), 8);
  assertEquals(large.stream.log.at(-1), "reset 8");
});

Deno.test("a connection that takes no more calls is UNAVAILABLE", async () => {
  const opener = {
    openStream: () => {
      throw new ConnectionUnavailableError("it is closed");
    },
  };
  const request = new Uint8Array(0);
  const promise = unaryCall(opener, { ...OPTIONS, request });
  assertEquals(await rejection(promise), 14);
});

Deno.test("metadata that cannot be sent stays a bug and opens no stream", async () => {
  const opener = new FakeOpener();
  const request = new Uint8Array(0);
  const metadata = new Metadata({ "ö": "" });
  await assertRejects(
    () => unaryCall(opener, { ...OPTIONS, request, metadata }),
    TypeError,
  );
  assertEquals(opener.stream.log, []);
});

Deno.test("room is asked for only when it can be used", () => {
  const { call, stream, peer } = new Scene();
  call.awaitRoom();
  assertEquals(stream.isAwaitingRoom, true);
  stream.isAwaitingRoom = false;
  stream.credit = 5;
  call.sendMessage(new Uint8Array(4));
  stream.isAwaitingRoom = false;
  call.awaitRoom();
  assertEquals(stream.isAwaitingRoom, false, "kept bytes have asked");
  stream.credit = 100;
  peer.onWritable();
  call.halfClose();
  call.awaitRoom();
  assertEquals(stream.isAwaitingRoom, false, "nothing is left to say");
  assertThrows(
    () => call.sendFrame(new Uint8Array(0), new Uint8Array(1)),
    TypeError,
    "Cannot send",
  );
});

Deno.test("what arrives after a cancellation is not looked at", () => {
  const { call, peer, received } = new Scene();
  call.cancel();
  peer.onHeaders(fields(HEAD));
  assertEquals(received, []);
  const cancelled = new Scene({}, () => {
    cancelled.call.cancel();
    throw new GrpcError(8, "too much");
  });
  cancelled.peer.onHeaders(fields(HEAD));
  cancelled.peer.onData(new Uint8Array(1));
  assertEquals(cancelled.received, ["metadata "]);
});
