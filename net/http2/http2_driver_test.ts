import { assert, assertEquals } from "@std/assert";
import { HeardErrors } from "../../tests/support/watch/heard_errors.ts";
import { slip } from "../../tests/support/watch/heard_faults.ts";
import { tcpPair } from "../../tests/support/peers/sockets.ts";
import {
  DESERTED_HOLD_MS,
  driveHttp2,
  type Http2Engine,
  LINGER_BYTES_MAX,
  LINGER_MS,
} from "./http2_driver.ts";
import { denoSocket } from "../stream/deno_socket.ts";
import { socketTransport } from "../stream/socket_transport.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { Transport, TransportEvents } from "../stream/transport.ts";

Deno.test("all output of a turn leaves in one write", async () => {
  const { engine, transport } = drive();
  engine.say("a");
  engine.say("b");
  engine.say("c");
  assertEquals(transport.writes, []);
  await Promise.resolve();
  assertEquals(transport.writes, ["abc"]);
});

Deno.test("the answer to bytes that came before leaves with the first words", async () => {
  const engine = new FakeEngine();
  engine.say("settings");
  engine.onReceive = () => engine.say("ack");
  const transport = new FakeTransport();
  transport.onStart = ({ onChunk }) =>
    queueMicrotask(() => onChunk(new Uint8Array(1)));
  driveHttp2(transport, engine, new FakeTimers());
  await Promise.resolve();
  assertEquals([engine.received, transport.writes], [1, ["settingsack"]]);
});

Deno.test("output during a write waits for it and leaves at once after it", async () => {
  const { engine, transport } = drive();
  engine.say("first");
  await Promise.resolve();
  engine.say("second");
  engine.say("third");
  await Promise.resolve();
  assertEquals(transport.writes, ["first"]);
  transport.complete();
  assertEquals(transport.writes, ["first", "secondthird"]);
  assertEquals(engine.written, 1);
});

Deno.test("what is said to a client without calls is not written if it leaves", async () => {
  const { engine, transport, timers } = drive();
  await Promise.resolve(); // The first look, for what was said before.
  engine.isDeserted = true;
  engine.say("pong");
  await Promise.resolve();
  assertEquals(transport.writes, []);
  transport.events.onEnd();
  assertEquals([transport.writes, transport.calls], [[], ["close"]]);
  transport.events.onClose(undefined);
  timers.advance(DESERTED_HOLD_MS);
  assertEquals([transport.writes, engine.closed], [[], 1]);
});

Deno.test("a client without calls that stays gets its answer a little later", async () => {
  const { engine, transport, timers } = drive();
  await Promise.resolve(); // The first look, for what was said before.
  engine.isDeserted = true;
  engine.say("pong");
  timers.advance(DESERTED_HOLD_MS);
  assertEquals(transport.writes, ["pong"]);
  transport.complete();
  engine.say("another");
  // It calls again: nothing is held back any more.
  engine.onReceive = () => engine.isDeserted = false;
  transport.events.onChunk(new Uint8Array(1));
  await Promise.resolve();
  assertEquals([transport.writes, timers.due], [["pong", "another"], []]);
});

Deno.test("one timer serves all deadlines and moves only to earlier ones", () => {
  const { engine, transport, timers } = drive();
  engine.nextDeadlineMs = 100;
  transport.events.onChunk(new Uint8Array(1));
  engine.nextDeadlineMs = 200;
  transport.events.onChunk(new Uint8Array(1));
  assertEquals(timers.due, [100]);
  engine.nextDeadlineMs = 50;
  transport.events.onChunk(new Uint8Array(1));
  assertEquals(timers.due, [50]);
  engine.nextDeadlineMs = 300;
  timers.advance(50);
  assertEquals([engine.deadlines, timers.due.join()], [0, "300"]);
  timers.advance(300);
  assertEquals(engine.deadlines, 1);
});

Deno.test("a finished engine ends our side, lingers, then closes", async () => {
  const { engine, transport, timers } = drive();
  engine.say("goodbye");
  await Promise.resolve();
  engine.saidAll = true;
  assertEquals(transport.calls, []);
  transport.complete();
  assertEquals(transport.calls, ["closeWrite"]);
  transport.events.onChunk(new Uint8Array(1));
  assertEquals(engine.received, 0, "nothing is heard after the end");
  assertEquals(timers.due, [LINGER_MS]);
  timers.advance(LINGER_MS);
  assertEquals(transport.calls, ["closeWrite", "close"]);
  transport.events.onClose(undefined);
  assertEquals(engine.closed, 1);
});

Deno.test("whoever floods an engine that has finished is hung up on", async () => {
  const { engine, transport } = drive();
  engine.say("goodbye");
  await Promise.resolve();
  engine.saidAll = true;
  transport.complete();
  transport.events.onChunk(new Uint8Array(LINGER_BYTES_MAX));
  assertEquals(transport.calls, ["closeWrite"]);
  transport.events.onChunk(new Uint8Array(1));
  assertEquals(transport.calls, ["closeWrite", "close"]);
});

Deno.test("an engine that gives up does not wait for its write", async () => {
  const { engine, transport } = drive();
  engine.say("stuck");
  await Promise.resolve();
  engine.gaveUp = true;
  transport.events.onChunk(new Uint8Array(1));
  assertEquals(transport.calls, ["close"]);
});

Deno.test("a lost transport is told to the engine and stops the timer", () => {
  const { engine, transport, timers } = drive();
  engine.nextDeadlineMs = 100;
  transport.events.onChunk(new Uint8Array(1));
  transport.events.onClose(new Error("gone"));
  assertEquals(engine.closed, 1);
  assertEquals(timers.due, []);
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
  driveHttp2(socketTransport(denoSocket(left)), asking, systemTimers);
  driveHttp2(
    socketTransport(denoSocket(right), new TextEncoder().encode("early")),
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
  "bytes": ({ engine, transport }) => {
    engine.receive = slip;
    transport.events.onChunk(new Uint8Array(1));
  },
  "the peer's end": ({ engine, transport }) => {
    engine.receiveEnd = slip;
    transport.events.onEnd();
  },
  "output": ({ engine }) => {
    engine.takeOutput = slip;
    engine.say("a");
  },
  "a write that has left": ({ engine, transport }) => {
    engine.outputWritten = slip;
    transport.write = (_bytes, done) => queueMicrotask(done);
    engine.say("a");
  },
  "a deadline": ({ engine, transport, timers }) => {
    engine.onDeadline = slip;
    engine.nextDeadlineMs = 100;
    transport.events.onChunk(new Uint8Array(1));
    timers.advance(100);
  },
};

for (const [entry, provoke] of Object.entries(ENTRIES)) {
  Deno.test(`an engine that throws at ${entry} costs its connection`, async () => {
    using heard = new HeardErrors();
    const scene = drive();
    const { engine, transport } = scene;
    await Promise.resolve();
    provoke(scene);
    await Promise.resolve();
    await Promise.resolve();
    assertEquals(heard.errors, [{ where: "http2", message: "a slip" }]);
    assertEquals(transport.calls, ["close"]);
    transport.events.onClose(undefined);
    assertEquals(engine.lost?.message, "an internal error");
  });
}

Deno.test("an engine that throws at its end is only reported", () => {
  using heard = new HeardErrors();
  const { engine, transport } = drive();
  engine.transportClosed = slip;
  transport.events.onClose(undefined);
  assertEquals(heard.messages, ["a slip"]);
});

type Scene = ReturnType<typeof drive>;

function drive() {
  const engine = new FakeEngine();
  const transport = new FakeTransport();
  const timers = new FakeTimers();
  driveHttp2(transport, engine, timers);
  return { engine, transport, timers };
}

class FakeEngine implements Http2Engine {
  saidAll = false;
  isDeserted = false;
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

class FakeTransport implements Transport {
  readonly remoteAddress = "";
  readonly localAddress = "";
  readonly alpn = "";
  readonly identity = {
    kind: "anonymous",
    commonName: "",
    fingerprint: "",
    names: [],
  } as const;
  readonly writes: string[] = [];
  readonly calls: string[] = [];
  events!: TransportEvents;
  #done: (() => void) | undefined;

  onStart: (events: TransportEvents) => void = () => {};

  start(events: TransportEvents): void {
    this.events = events;
    this.onStart(events);
  }

  write(bytes: Uint8Array, done: () => void): void {
    this.writes.push(new TextDecoder().decode(bytes));
    this.#done = done;
  }

  complete(): void {
    this.#done!();
  }

  closeWrite(): void {
    this.calls.push("closeWrite");
  }

  close(): void {
    this.calls.push("close");
  }
}

class FakeTimers {
  #now = 0;
  #set: { dueMs: number; callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(delayMs: number, callback: () => void): { cancel(): void } {
    const timer = { dueMs: this.#now + delayMs, callback };
    this.#set.push(timer);
    return {
      cancel: () => this.#set = this.#set.filter((other) => other !== timer),
    };
  }

  get due(): number[] {
    return this.#set.map((timer) => timer.dueMs);
  }

  advance(toMs: number): void {
    this.#now = toMs;
    const due = this.#set.filter((timer) => timer.dueMs <= toMs);
    this.#set = this.#set.filter((timer) => timer.dueMs > toMs);
    for (const timer of due) timer.callback();
  }
}
