import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { KEPT_BYTES_MAX, LineOutput } from "./log.ts";

/** A reader that may stand still. */
class Reader {
  text = "";
  isReading = true;
  waitedMs = 0;
  piecesMax = 0;
  /** Of the disk that a log is on. */
  isFull = false;

  isReady(timeoutMs: number): boolean {
    if (!this.isReading) this.waitedMs += timeoutMs;
    return this.isReading;
  }

  write(bytes: Uint8Array): number {
    assert(this.isReading, "the process would stand still");
    if (this.isFull) {
      throw Object.assign(new Error("No space left"), { code: "ENOSPC" });
    }
    this.piecesMax = Math.max(this.piecesMax, bytes.length);
    this.text += new TextDecoder().decode(bytes);
    return bytes.length;
  }
}

function open() {
  const reader = new Reader();
  const timers = new FakeTimers();
  const say = (text: string) => output.write(new TextEncoder().encode(text));
  const output = new LineOutput(
    reader,
    timers,
    (lines) => say(`${lines} are missing\n`),
  );
  return { reader, timers, output, say };
}

Deno.test("a line is written at once while somebody reads", () => {
  const { reader, say } = open();
  say("one\n");
  say("two\n");
  assertEquals(reader.text, "one\ntwo\n");
});

Deno.test("a reader that stands still is not waited for, and gets all later, in order", () => {
  const { reader, timers, say } = open();
  say("one\n");
  reader.isReading = false;
  say("two\n");
  say("three\n");
  timers.advance(5_000);
  assertEquals([reader.text, reader.waitedMs], ["one\n", 0]);
  reader.isReading = true;
  timers.advance(200);
  assertEquals(reader.text, "one\ntwo\nthree\n");
  say("four\n");
  assertEquals(reader.text, "one\ntwo\nthree\nfour\n");
});

Deno.test("what is too much is counted, and the count is said", () => {
  const { reader, timers, say } = open();
  reader.isReading = false;
  const line = `${"x".repeat(1023)}\n`;
  const fit = KEPT_BYTES_MAX / line.length;
  for (let count = 0; count < fit + 7; count++) say(line);
  reader.isReading = true;
  timers.advance(200);
  assertEquals(reader.text, line.repeat(fit) + "7 are missing\n");
});

Deno.test("a long line leaves in pieces that a pipe takes without waiting", () => {
  const { reader, say } = open();
  const line = `${"y".repeat(10_000)}\n`;
  say(line);
  assertEquals(reader.text, line);
  assertEquals(reader.piecesMax, 4_096);
});

Deno.test("a process that ends waits for its reader, a second and no more", () => {
  const { reader, output, say } = open();
  reader.isReading = false;
  say("why it ends\n");
  output.end();
  assertEquals([reader.text, reader.waitedMs], ["", 1_000]);
});

Deno.test("a log on a full disk ends nothing, and goes on when there is room", () => {
  const { reader, timers, say } = open();
  say("one\n");
  reader.isFull = true;
  say("two\n");
  say("three\n");
  timers.advance(5_000);
  assertEquals(reader.text, "one\n");
  reader.isFull = false;
  timers.advance(1_000);
  assertEquals(reader.text, "one\ntwo\nthree\n");
});
