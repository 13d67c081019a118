import { assertEquals, assertStringIncludes } from "@std/assert";
import { FakeStream, fields } from "../../tests/support/memory/fake_stream.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  FOREIGN_BODY_BYTES_MAX,
  FOREIGN_REQUEST_WAIT_MS,
  ForeignRequest,
} from "./foreign_request.ts";

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
