/**
 * What our client does with every server: the same cases that the peers'
 * clients run against ours.
 *
 * @module
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { Metadata } from "../../../proto/grpc/metadata.ts";
import { StatusCode } from "../../../proto/grpc/status.ts";
import type { OurClient, TestCall } from "./our_client.ts";
import { nextTurn } from "../../../tests/support/watch/event_loop.ts";

const MIB = 1024 * 1024;
const ENCODER = new TextEncoder();

/** By name; the last one ends the connection. */
export const CLIENT_CASES: Readonly<
  Record<string, (client: OurClient) => Promise<void>>
> = {
  async "unary: nothing, little and 4 MiB come back"(client) {
    for (const bytes of [0, 1, 16_384, 65_536, 4 * MIB]) {
      const { answer } = await client.unary("Unary", pattern(bytes));
      assertSame(answer, pattern(bytes));
    }
  },

  async "unary: 200 calls at once"(client) {
    await Promise.all(Array.from({ length: 200 }, async (_, index) => {
      const request = ENCODER.encode(`call ${index}`);
      const { answer } = await client.unary("Unary", request);
      assertSame(answer, request);
    }));
  },

  async "metadata: text and bytes come back in head and trailers"(client) {
    const metadata = new Metadata({ "x-text": "a b" });
    metadata.add("x-text", "second");
    metadata.add("x-octets-bin", Uint8Array.of(0, 255, 16));
    metadata.add("x-octets-bin", Uint8Array.of(1));
    const { call } = await client.unary("Unary", new Uint8Array(0), {
      metadata,
    });
    for (const back of [call.head!, call.trailers!]) {
      // One implementation joins the values of a name.
      assertEquals(back.texts("x-text").join(", "), "a b, second");
      assertEquals(back.all("x-octets-bin").map((value) => [...value]), [
        [0, 255, 16],
        [1],
      ]);
    }
  },

  async "status: every code with a message beyond ASCII"(client) {
    for (let code = 1; code <= 16; code++) {
      const text = `größer als 100% ☃😀\n(${code})`;
      const call = client.start("Fail");
      await call.send(ENCODER.encode(`${code} ${text}`));
      call.end();
      const error = await call.failure();
      assertEquals([error.code, error.message], [code, text]);
    }
  },

  async "status: an unknown method is UNIMPLEMENTED"(client) {
    const call = client.start("Nothing");
    call.end();
    const error = await call.failure();
    assertEquals(error.code, StatusCode.UNIMPLEMENTED);
    assertStringIncludes(error.message, "Nothing");
  },

  "server streaming: 1000 messages": (client) =>
    receiveMany(client, 1000, 5000),

  "server streaming: three of 4 MiB": (client) =>
    receiveMany(client, 3, 4 * MIB),

  async "client streaming: 1000 messages"(client) {
    const call = client.start("Sum");
    for (let left = 1000; left > 0; left--) await call.send(pattern(5000));
    call.end();
    const answer = new TextDecoder().decode(await call.receive());
    assertEquals(answer, "1000 5000000");
    await call.finished();
  },

  async "bidi: ping-pong, then half-close"(client) {
    const call = client.start("Bidi");
    for (let round = 0; round < 200; round++) {
      await pingPong(call, round * 10);
    }
    call.end();
    await call.finished();
  },

  async "bidi: 4 MiB each way"(client) {
    const call = client.start("Bidi");
    await pingPong(call, 4 * MIB);
    await pingPong(call, 4 * MIB);
    call.end();
    await call.finished();
  },

  async "bidi: an error while the client is sending"(client) {
    const call = client.start("Fail");
    const failure = call.failure();
    let isOver = false;
    failure.then(() => isOver = true);
    while (!isOver) {
      await call.send(ENCODER.encode("9 stop"));
      await nextTurn();
    }
    assertEquals((await failure).code, StatusCode.FAILED_PRECONDITION);
  },

  async "cancel: the server hears of it"(client) {
    const call = client.start("Hang");
    await call.send(pattern(10));
    // The server must have seen the call before it can see its end.
    await client.unary("Unary", pattern(1));
    call.cancel();
    await client.unary("Ended", new Uint8Array(0));
  },

  async "deadline: both sides keep it"(client) {
    const call = client.start("Hang", { timeoutMs: 50 });
    assertEquals((await call.failure()).code, StatusCode.DEADLINE_EXCEEDED);
    await client.unary("Ended", new Uint8Array(0));
  },

  async "limit: 9 MiB are RESOURCE_EXHAUSTED"(client) {
    const call = client.start("Unary");
    const sent = call.send(pattern(9 * MIB));
    call.end();
    const error = await call.failure();
    await sent;
    assertEquals(error.code, StatusCode.RESOURCE_EXHAUSTED);
    assertStringIncludes(error.message, "8388608");
  },

  async "goaway: what runs is finished"(client) {
    const call = client.start("Bidi");
    await pingPong(call, 10);
    await client.unary("Goaway", new Uint8Array(0));
    for (let round = 0; round < 20; round++) await pingPong(call, 50_000);
    call.end();
    await call.finished();
    assert(client.isGoingAway, "no GOAWAY came");
    await client.closed;
  },
};

async function receiveMany(
  client: OurClient,
  count: number,
  bytes: number,
): Promise<void> {
  const call = client.start("Many");
  await call.send(ENCODER.encode(`${count} ${bytes}`));
  call.end();
  for (let index = 0; index < count; index++) {
    assertSame(
      await call.receive(),
      new Uint8Array(bytes).fill(index),
    );
  }
  await call.finished();
}

async function pingPong(call: TestCall, bytes: number): Promise<void> {
  const sent = call.send(pattern(bytes));
  assertSame(await call.receive(), pattern(bytes));
  await sent;
}

function pattern(bytes: number): Uint8Array {
  return new Uint8Array(bytes).map((_, index) => index * 7);
}

/** As assertEquals, but fast for megabytes. */
function assertSame(actual: Uint8Array, wanted: Uint8Array): void {
  assertEquals(actual.length, wanted.length);
  const differs = wanted.findIndex((byte, index) => byte !== actual[index]);
  assertEquals(differs, -1, `other bytes came back, from ${differs} on`);
}
