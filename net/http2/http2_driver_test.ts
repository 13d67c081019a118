import { assert, assertEquals } from "@std/assert";
import { RecordedErrors } from "../../tests/support/watch/recorded_errors.ts";
import { slip } from "../../tests/support/watch/recorded_faults.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { tcpPair } from "../../tests/support/peers/sockets.ts";
import {
  driveHttp2,
  type Http2Engine,
  IDLE_HOLD_MS,
  LINGER_BYTES_MAX,
  LINGER_MS,
} from "./http2_driver.ts";
import { denoStream } from "../stream/platform_stream.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { PeekedStream } from "../stream/peeked_stream.ts";

Deno.test("all output of a turn leaves in one write", async () => {
  const { engine, stream } = drive();
  engine.say("a");
  engine.say("b");
  engine.say("c");
  assertEquals(stream.texts, []);
  await Promise.resolve();
  assertEquals(stream.texts, ["abc"]);
});

Deno.test("the answer to bytes that came before leaves with the first words", async () => {
  const engine = new FakeEngine();
  engine.say("settings");
  engine.onReceive = () => engine.say("ack");
  const stream = new ScriptedStream();
  stream.deliver(new Uint8Array(1));
  driveHttp2(stream, engine, new FakeTimers());
  await Promise.resolve();
  assertEquals([engine.received, stream.texts], [1, ["settingsack"]]);
});

Deno.test("output during a write waits for it and leaves at once after it", async () => {
  const { engine, stream } = drive();
  engine.say("first");
  await Promise.resolve();
  engine.say("second");
  engine.say("third");
  await Promise.resolve();
  assertEquals(stream.texts, ["first"]);
  stream.complete();
  await settled();
  assertEquals(stream.texts, ["first", "secondthird"]);
  assertEquals(engine.written, 1);
});

Deno.test("what is said to a client without calls is not written if it leaves", async () => {
  const { engine, stream, timers } = drive();
  await Promise.resolve(); // The first look, for what was said before.
  engine.isIdle = true;
  engine.say("pong");
  await Promise.resolve();
  assertEquals(stream.texts, []);
  stream.deliver(null);
  assertEquals([stream.texts, stream.calls], [[], ["close"]]);
  await settled();
  timers.advance(IDLE_HOLD_MS);
  assertEquals([stream.texts, engine.closed], [[], 1]);
});

Deno.test("a client without calls that stays gets its answer a little later", async () => {
  const { engine, stream, timers } = drive();
  await Promise.resolve(); // The first look, for what was said before.
  engine.isIdle = true;
  engine.say("pong");
  timers.advance(IDLE_HOLD_MS);
  assertEquals(stream.texts, ["pong"]);
  stream.complete();
  await settled();
  engine.say("another");
  // It calls again: nothing is held back any more.
  engine.onReceive = () => engine.isIdle = false;
  stream.deliver(new Uint8Array(1));
  await Promise.resolve();
  assertEquals([stream.texts, timers.pendingMs], [["pong", "another"], []]);
});

Deno.test("one timer serves all deadlines and moves only to earlier ones", () => {
  const { engine, stream, timers } = drive();
  engine.nextDeadlineMs = timers.now() + 100;
  stream.deliver(new Uint8Array(1));
  engine.nextDeadlineMs = timers.now() + 200;
  stream.deliver(new Uint8Array(1));
  assertEquals(timers.pendingMs, [100]);
  engine.nextDeadlineMs = timers.now() + 50;
  stream.deliver(new Uint8Array(1));
  assertEquals(timers.pendingMs, [50]);
  engine.nextDeadlineMs = timers.now() + 300;
  timers.advance(50);
  assertEquals([engine.deadlines, timers.pendingMs], [0, [250]]);
  timers.advance(250);
  assertEquals(engine.deadlines, 1);
});

Deno.test("a finished engine ends our side, lingers, then closes", async () => {
  const { engine, stream, timers } = drive();
  engine.say("goodbye");
  await Promise.resolve();
  engine.saidAll = true;
  assertEquals(stream.calls, []);
  stream.complete();
  await settled();
  assertEquals(stream.calls, ["closeWrite"]);
  stream.deliver(new Uint8Array(1));
  assertEquals(engine.received, 0, "nothing is heard after the end");
  assertEquals(timers.pendingMs, [LINGER_MS]);
  timers.advance(LINGER_MS);
  assertEquals(stream.calls, ["closeWrite", "close"]);
  await settled();
  assertEquals(engine.closed, 1);
});

Deno.test("whoever floods an engine that has finished is hung up on", async () => {
  const { engine, stream } = drive();
  engine.say("goodbye");
  await Promise.resolve();
  engine.saidAll = true;
  stream.complete();
  await settled();
  stream.deliver(new Uint8Array(LINGER_BYTES_MAX));
  assertEquals(stream.calls, ["closeWrite"]);
  stream.deliver(new Uint8Array(1));
  assertEquals(stream.calls, ["closeWrite", "close"]);
});

Deno.test("an engine that gives up does not wait for its write", async () => {
  const { engine, stream } = drive();
  engine.say("stuck");
  await Promise.resolve();
  engine.gaveUp = true;
  stream.deliver(new Uint8Array(1));
  assertEquals(stream.calls, ["close"]);
});

Deno.test("a lost stream is reported to the engine and stops the timer", async () => {
  const { engine, stream, timers } = drive();
  engine.nextDeadlineMs = timers.now() + 100;
  stream.deliver(new Uint8Array(1));
  stream.deliver(new Error("gone"));
  await settled();
  assertEquals(engine.closed, 1);
  assertEquals(timers.pendingMs, []);
});

Deno.test("two engines talk over a real socket", async () => {
  const [left, right] = await tcpPair();
  const [asking, answering] = [new FakeEngine(), new FakeEngine()];
  const done = Promise.withResolvers<void>();
  answering.onReceive = () => {
    answering.say("answer");
    answering.saidAll = true;
  };
  asking.onReceive = () => asking.saidAll = true;
  asking.onClosed = () => answering.closed && done.resolve();
  answering.onClosed = () => asking.closed && done.resolve();
  driveHttp2(denoStream(left), asking, systemTimers);
  const early = new TextEncoder().encode("early");
  driveHttp2(
    new PeekedStream(denoStream(right), early),
    answering,
    systemTimers,
  );
  await done.promise;
  assertEquals(answering.heard, "early");
  assertEquals(asking.heard, "answer");
  assert(asking.closed === 1 && answering.closed === 1);
});

/** Where the engine is entered, and how it is made to throw there. */
const ENTRIES: Readonly<Record<string, (scene: Scene) => void>> = {
  "bytes": ({ engine, stream }) => {
    engine.receive = slip;
    stream.deliver(new Uint8Array(1));
  },
  "the peer's end": ({ engine, stream }) => {
    engine.receiveEnd = slip;
    stream.deliver(null);
  },
  "output": ({ engine }) => {
    engine.takeOutput = slip;
    engine.say("a");
  },
  "a write that has left": ({ engine, stream }) => {
    engine.outputWritten = slip;
    stream.isSlow = false;
    engine.say("a");
  },
  "a deadline": ({ engine, stream, timers }) => {
    engine.onDeadline = slip;
    engine.nextDeadlineMs = timers.now() + 100;
    stream.deliver(new Uint8Array(1));
    timers.advance(100);
  },
};

for (const [entry, provoke] of Object.entries(ENTRIES)) {
  Deno.test(`an engine that throws at ${entry} costs its connection`, async () => {
    using heard = new RecordedErrors();
    const scene = drive();
    const { engine, stream } = scene;
    await Promise.resolve();
    provoke(scene);
    await Promise.resolve();
    await Promise.resolve();
    assertEquals(heard.errors, [{ where: "http2", message: "a slip" }]);
    assertEquals(stream.calls, ["close"]);
    await settled();
    assertEquals(engine.lost?.message, "an internal error");
  });
}

Deno.test("an engine that throws at its end is only reported", async () => {
  using heard = new RecordedErrors();
  const { engine, stream } = drive();
  engine.transportClosed = slip;
  stream.deliver(new Error("gone"));
  await settled();
  assertEquals(heard.messages, ["a slip"]);
});

Deno.test("who closes a stream under its engine ends the engine", async () => {
  const { engine, stream, timers } = drive();
  engine.nextDeadlineMs = timers.now() + 100;
  stream.deliver(new Uint8Array(1));
  stream.close();
  await settled();
  assertEquals([engine.closed, engine.lost, timers.pendingMs], [
    1,
    undefined,
    [],
  ]);
});

type Scene = ReturnType<typeof drive>;

function drive() {
  const engine = new FakeEngine();
  const stream = new ScriptedStream();
  stream.isSlow = true;
  const timers = new FakeTimers();
  driveHttp2(stream, engine, timers);
  return { engine, stream, timers };
}

class FakeEngine implements Http2Engine {
  saidAll = false;
  isIdle = false;
  nextDeadlineMs = Infinity;
  gaveUp = false;
  taken = 0;
  written = 0;
  received = 0;
  deadlines = 0;
  closed = 0;
  lost: Error | undefined;
  heard = "";
  onReceive = () => {};
  onClosed = () => {};
  #output = "";
  #listener = () => {};

  get isFinished(): boolean {
    return this.gaveUp ||
      this.saidAll && this.#output === "" && this.written === this.taken;
  }

  say(text: string): void {
    if (this.#output === "") this.#listener();
    this.#output += text;
  }

  setOutputListener(listener: () => void): void {
    this.#listener = listener;
    if (this.#output !== "") listener();
  }

  receive(chunk: Uint8Array): void {
    this.received += chunk.length;
    this.heard += new TextDecoder().decode(chunk);
    this.onReceive();
  }

  receiveEnd(): void {
    this.saidAll = true;
  }

  transportClosed(error?: Error): void {
    this.closed++;
    this.lost = error;
    this.onClosed();
  }

  takeOutput(): Uint8Array | undefined {
    const text = this.#output;
    this.#output = "";
    if (text === "") return undefined;
    this.taken++;
    return new TextEncoder().encode(text);
  }

  outputWritten(): void {
    this.written++;
  }

  onDeadline(): void {
    this.deadlines++;
    this.nextDeadlineMs = Infinity;
  }
}
