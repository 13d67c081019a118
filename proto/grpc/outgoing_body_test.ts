import { assertEquals, assertThrows } from "@std/assert";
import { FakeStream } from "../../tests/support/memory/fake_stream.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import { frameMessage } from "./message_reader.ts";
import { OutgoingBody } from "./outgoing_body.ts";

Deno.test("a message that fits is one frame", () => {
  const stream = new FakeStream();
  const body = new OutgoingBody(stream);
  assertEquals(body.sendMessage(Uint8Array.of(7, 8)), true);
  assertEquals(stream.log, ["data 7"]);
  assertEquals(stream.body, [0, 0, 0, 0, 2, 7, 8]);
});

Deno.test("a message larger than a frame is cut without being kept", () => {
  const stream = new FakeStream();
  const body = new OutgoingBody(stream);
  assertEquals(body.sendMessage(new Uint8Array(40_000)), true);
  assertEquals(stream.log, ["data 16384", "data 16384", "data 7237"]);
});

Deno.test("what does not fit is kept as a copy and there is no room meanwhile", () => {
  const stream = new FakeStream();
  stream.credit = 6;
  const body = new OutgoingBody(stream);
  const message = Uint8Array.of(1, 2, 3);
  assertEquals(body.sendMessage(message), false);
  message.fill(9);
  assertEquals(body.keptBytes, 2);
  assertEquals(stream.isAwaitingRoom, true);
  stream.credit = 100;
  assertEquals(body.room, 0);
  assertThrows(
    () => body.sendFrame(message, message),
    RangeError,
    "2 bytes are kept",
  );
  assertEquals(body.resume(), true);
  assertEquals(stream.body, [0, 0, 0, 0, 3, 1, 2, 3]);
  assertEquals(body.room, stream.room);
});

Deno.test("a shared rest is one message with its head, and kept as it is", () => {
  const shared = Uint8Array.of(3, 4, 5);
  const whole = [0, 0, 0, 0, 5, 1, 2, 3, 4, 5];
  for (let credit = 0; credit <= whole.length; credit++) {
    const stream = new FakeStream();
    stream.credit = credit;
    const body = new OutgoingBody(stream);
    const message = Uint8Array.of(1, 2);
    const isAllSent = credit === whole.length;
    assertEquals(body.sendMessage(message, shared), isAllSent);
    message.fill(9);
    assertEquals(stream.isAwaitingRoom, !isAllSent);
    // Less than the head of the message is not begun with.
    assertEquals(body.keptBytes, credit < 7 ? 10 : 10 - credit);
    assertEquals(body.sendMessage(message, new Uint8Array(0)), false);
    stream.credit = 100;
    assertEquals(body.resume(), true);
    assertEquals(stream.body, [...whole, 0, 0, 0, 0, 2, 9, 9]);
  }
});

Deno.test("less room than a prefix is left alone", () => {
  for (let credit = 0; credit < 5; credit++) {
    const stream = new FakeStream();
    stream.credit = credit;
    const body = new OutgoingBody(stream);
    assertEquals(body.sendMessage(new Uint8Array(0)), false);
    assertEquals([stream.log, stream.isAwaitingRoom], [[], true]);
    assertEquals(body.keptBytes, 5);
  }
});

Deno.test("the ending runs at once when nothing is kept, else behind it", () => {
  const stream = new FakeStream();
  const body = new OutgoingBody(stream);
  body.endWith(() => stream.log.push("first"));
  stream.credit = 0;
  body.sendMessage(new Uint8Array(3));
  body.endWith(() => stream.end());
  stream.credit = 4;
  assertEquals(body.resume(), false);
  stream.credit = 4;
  assertEquals(body.resume(), true);
  assertEquals(stream.log, ["first", "data 4", "data 4", "end"]);
});

Deno.test("dropped bytes and endings never leave", () => {
  const stream = new FakeStream();
  stream.credit = 0;
  const body = new OutgoingBody(stream);
  body.sendMessage(new Uint8Array(3));
  body.endWith(() => stream.end());
  body.drop();
  stream.credit = 100;
  assertEquals(body.resume(), true);
  assertEquals([stream.log, body.keptBytes], [[], 0]);
});

Deno.test("messages leave whole and in order whatever room there is", async () => {
  await forAll(200, (prng) => {
    const stream = new FakeStream();
    const body = new OutgoingBody(stream);
    const wanted: number[] = [];
    for (let step = 0; step < 30; step++) {
      stream.frameBytesMax = 1 + prng.below(40);
      stream.credit = prng.pick([0, prng.below(10), prng.below(200)]);
      if (prng.below(2) === 0) body.resume();
      const message = prng.bytes(prng.below(60));
      wanted.push(...frameMessage(message));
      const isAllSent = body.sendMessage(message);
      message.fill(0xee);
      assertEquals(isAllSent, body.keptBytes === 0);
      assertEquals(stream.body.length + body.keptBytes, wanted.length);
    }
    stream.credit = Infinity;
    body.resume();
    assertEquals(stream.body, wanted);
  });
});
