import { assertEquals, assertStringIncludes } from "@std/assert";
import { gzipSync } from "node:zlib";
import { RecordedFaults } from "../../tests/support/watch/recorded_faults.ts";
import { FakeStream, fields } from "../../tests/support/memory/fake_stream.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import type { StreamEvents } from "../streams/stream.ts";
import type { ServerCall } from "./call.ts";
import { frameMessage } from "./message_reader.ts";
import { GrpcRouter, type MethodLimits, unaryMethod } from "./server.ts";
import { GrpcError, StatusCode } from "./status.ts";

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
