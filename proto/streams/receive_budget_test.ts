import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  type Engine,
  enginePair,
  openLogged,
} from "../../tests/support/memory/engine_pair.ts";
import { forAll, Prng } from "../../tests/support/memory/prng.ts";
import type { MemoryPipe } from "../../tests/support/memory/memory_pipe.ts";
import { StreamLog } from "../../tests/support/watch/stream_log.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { ReceiveWindow } from "./flow_window.ts";
import {
  type Budgeted,
  CLEARED_SHARE,
  PROGRESS_BYTES_MIN,
  ReceiveBudget,
} from "./receive_budget.ts";
import { PathRtt } from "./liveness.ts";
import {
  CONNECTION_WINDOW_BYTES_MIN,
  ConnectionWindowSize,
} from "./receiving_side.ts";

const WINDOW = 1_000_000;

/** A stream that only knows its window, and what the budget did to it. */
class FakeBudgeted implements Budgeted {
  readonly receiveWindow: ReceiveWindow = new ReceiveWindow(WINDOW);
  progressTick = 0;
  /** Why it was reset, if it was. */
  reason: string | undefined;

  constructor(private readonly budget: ReceiveBudget) {}

  get waitingBytes(): number {
    return this.receiveWindow.outstanding;
  }

  giveUp(reason: string): void {
    this.reason = reason;
    this.budget.closed(this);
    this.receiveWindow.release(this.receiveWindow.outstanding);
  }

  receive(bytes: number): void {
    assert(this.receiveWindow.receive(bytes));
    this.budget.received(this, bytes);
  }

  consume(bytes: number): void {
    this.receiveWindow.release(bytes);
    this.budget.consumed(this, bytes);
  }
}

function fakes(limitBytes: number, count: number) {
  const budget = new ReceiveBudget(limitBytes);
  const streams = Array.from({ length: count }, () => new FakeBudgeted(budget));
  budget.join({ budgeted: () => streams });
  return { budget, streams };
}

Deno.test("at the limit nobody is reset; over it who waits longest, and no more than needed", () => {
  const { budget, streams } = fakes(1000, 4);
  const [slow, moving, idle, last] = streams;
  moving!.receive(300);
  slow!.receive(400);
  // Progress makes it the younger one; very little of it does not.
  moving!.consume(PROGRESS_BYTES_MIN);
  slow!.consume(PROGRESS_BYTES_MIN - 1);
  last!.receive(300 + 2 * PROGRESS_BYTES_MIN - 1);
  assertEquals(budget.bytes, 1000);
  assertEquals(streams.every(({ reason }) => reason === undefined), true);
  last!.receive(1);
  assert(slow!.reason?.includes("wanted at most 1000"), slow!.reason);
  assertEquals(
    [moving!.reason, idle!.reason, last!.reason],
    new Array(3).fill(undefined),
  );
  assertEquals([budget.bytes, budget.resets], [664, 1]);
});

Deno.test("a stream that was empty begins its wait anew", () => {
  const { streams } = fakes(1000, 3);
  const [first, second, third] = streams;
  first!.receive(100);
  first!.consume(100);
  second!.receive(300);
  first!.receive(300);
  third!.receive(401);
  assertEquals(streams.map(({ reason }) => reason !== undefined), [
    false,
    true,
    false,
  ]);
});

Deno.test("who goes beyond it alone is reset itself", () => {
  const { budget, streams } = fakes(1000, 1);
  streams[0]!.receive(1001);
  assert(streams[0]!.reason !== undefined);
  assertEquals(budget.bytes, 0);
});

Deno.test("connections that left are not asked", () => {
  const budget = new ReceiveBudget(1000);
  const stream = new FakeBudgeted(budget);
  const member = { budgeted: () => [stream] };
  budget.join(member);
  budget.leave(member);
  stream.receive(1001);
  assertEquals([stream.reason, budget.members], [undefined, 0]);
});

Deno.test("a budget of nothing is our mistake", () => {
  assertThrows(() => new ReceiveBudget(0), RangeError);
});

Deno.test("whatever happens, it counts what is outstanding and stays at its limit", () =>
  forAll(100, (prng) => {
    const limitBytes = 5000;
    const { budget, streams } = fakes(limitBytes, 8);
    const stalledSince = new Map<FakeBudgeted, number>();
    for (let step = 1; step < 300; step++) {
      const stream = prng.pick(streams);
      if (stream.reason !== undefined) continue;
      const { outstanding } = stream.receiveWindow;
      if (outstanding === 0) stalledSince.set(stream, step);
      const before = streams.filter(({ reason }) => reason === undefined);
      if (prng.below(3) > 0) {
        stream.receive(1 + prng.below(600));
      } else if (outstanding > 0) {
        const bytes = 1 + prng.below(outstanding);
        stream.consume(bytes);
        if (bytes >= PROGRESS_BYTES_MIN) stalledSince.set(stream, step);
      }
      const sum = streams.reduce(
        (bytes, { receiveWindow }) => bytes + receiveWindow.outstanding,
        0,
      );
      assertEquals(budget.bytes, sum);
      assert(sum <= limitBytes);
      const reset = before.filter(({ reason }) => reason !== undefined);
      if (reset.length === 0) continue;
      assert(sum <= limitBytes * CLEARED_SHARE);
      const youngest = Math.max(...reset.map((one) => stalledSince.get(one)!));
      for (const one of before) {
        if (one.reason !== undefined || one.waitingBytes === 0) continue;
        assert(stalledSince.get(one)! > youngest, "a younger one was reset");
      }
    }
  }));

/** Opens a request with a body of so many bytes on its way. */
function upload(client: Engine, pipe: MemoryPipe, bytes: number): StreamLog {
  const log = openLogged(client.connection);
  const { stream } = log;
  let left = bytes;
  log.onRoom = () => void (left -= stream.write(new Uint8Array(left)));
  log.onRoom();
  pipe.settle();
  return log;
}

Deno.test("over the process's budget the longest-stalled stream of any connection goes", () => {
  const receiveBudget = new ReceiveBudget(100_000);
  const pairs = [1, 2].map(() => enginePair({ server: { receiveBudget } }));
  for (const { server } of pairs) {
    server.onStream = (log) => {
      log.onPiece = () => {};
    };
  }
  const [one, other] = pairs;
  const stalled = upload(one!.client, one!.pipe, 50_000);
  const later = upload(one!.client, one!.pipe, 20_000);
  assertEquals(receiveBudget.bytes, 70_000);
  const elsewhere = upload(other!.client, other!.pipe, 40_000);
  one!.pipe.settle();
  const [reported] = one!.server.accepted;
  assertEquals(reported!.resetBy?.by, "local");
  assertEquals(reported!.resetBy?.code, ErrorCode.ENHANCE_YOUR_CALM);
  assert(reported!.resetBy?.reason.includes("wait in this process"));
  assertEquals(stalled.resetBy?.code, ErrorCode.ENHANCE_YOUR_CALM);
  assertEquals([later.resetBy, elsewhere.resetBy], [undefined, undefined]);
  assertEquals(receiveBudget.bytes, 60_000);
  later.stream!.reset(ErrorCode.CANCEL);
  one!.pipe.settle();
  assertEquals(receiveBudget.bytes, 40_000);
  other!.server.connection.abort(0, "over");
  assertEquals([receiveBudget.bytes, receiveBudget.members], [0, 1]);
});

Deno.test("a stream that is divided is charged part by part, and is never reset whole", () => {
  const receiveBudget = new ReceiveBudget(100_000);
  const { client, server, pipe } = enginePair({ server: { receiveBudget } });
  const divided: ReceiveBudget[] = [];
  server.onStream = (log, stream) => {
    divided.push(stream.divideBudget());
    log.onPiece = () => {};
  };
  const uploads = [1, 2, 3].map(() => upload(client, pipe, 50_000));
  assertEquals(divided, [receiveBudget, receiveBudget, receiveBudget]);
  assertEquals([receiveBudget.bytes, receiveBudget.resets], [0, 0]);
  assertThrows(
    () => server.accepted[0]!.stream!.divideBudget(),
    TypeError,
    "has received data",
  );
  uploads[0]!.stream!.reset(ErrorCode.CANCEL);
  server.accepted[1]!.stream!.consumed(50_000);
  client.connection.abort(0, "over");
  pipe.settle();
  server.connection.receiveEnd();
  assertEquals([receiveBudget.bytes, receiveBudget.members], [0, 0]);
});

Deno.test("what is consumed, padded, reset or lost leaves nothing in the budget", () =>
  forAll(20, (prng) => {
    const receiveBudget = new ReceiveBudget(300_000);
    const { client, server, pipe } = enginePair({
      prng,
      server: { receiveBudget },
    });
    server.onStream = (log) => {
      log.onPiece = (chunk) => {
        if (prng.below(2) === 0) log.stream!.consumed(chunk.length);
        if (prng.below(30) === 0) log.stream!.reset(ErrorCode.CANCEL);
      };
    };
    for (let index = 0; index < 20; index++) {
      const log = upload(client, pipe, prng.below(100_000));
      if (prng.below(3) === 0) log.stream!.end();
      if (prng.below(4) === 0) log.stream!.reset(ErrorCode.CANCEL);
      assert(receiveBudget.bytes <= 300_000);
    }
    pipe.settle();
    client.connection.abort(0, "over");
    pipe.settle();
    server.connection.receiveEnd();
    assertEquals([receiveBudget.bytes, receiveBudget.members], [0, 0]);
  }));

const MIB = 1024 * 1024;
const MAX = 16 * MIB;

/** A path: what it carries, how long it is, and who else queues there. */
interface Path {
  bytesPerMs: number;
  lengthMs: number;
  /** How long others' bytes wait in the queue in front of ours. */
  othersMs: number;
  /** What the sender has to say per round trip. */
  offeredBytes: number;
}

/** A sender who always fills the window, over `path`. */
class Sender {
  readonly rtt = new PathRtt();
  readonly window = new ConnectionWindowSize(this.rtt, MIB, MAX);
  nowMs = 0;
  lastMs = 0;

  run(path: Path, rounds: number): void {
    for (let round = 0; round < rounds; round++) {
      const granted = Math.min(this.window.bytes, path.offeredBytes);
      const emptyMs = path.lengthMs + path.othersMs;
      this.lastMs = Math.max(emptyMs, granted / path.bytesPerMs);
      this.nowMs += this.lastMs;
      this.rtt.sample(this.lastMs, this.nowMs);
      this.window.onRound(granted, this.lastMs, this.nowMs);
    }
  }
}

function path(given: Partial<Path> = {}): Path {
  return {
    bytesPerMs: 12_500,
    lengthMs: 50,
    othersMs: 0,
    offeredBytes: Infinity,
    ...given,
  };
}

Deno.test("whatever the path, it gets full, and its queue does not", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const prng = new Prng(seed);
    const lengthMs = 1 + prng.below(150);
    const bytesPerMs = 1_000 + prng.below(60_000);
    const onPath = bytesPerMs * lengthMs;
    if (onPath > MAX / 2) continue;
    const sender = new Sender();
    // A first packet goes alone: that is where the length is learned.
    sender.run(path({ bytesPerMs, lengthMs, offeredBytes: 1000 }), 1);
    sender.run(path({ bytesPerMs, lengthMs }), 60);
    const { bytes } = sender.window;
    const about = `seed ${seed}: ${bytes} of ${onPath}`;
    assert(bytes >= Math.min(onPath, MAX) || sender.window.isDraining, about);
    const most = bytesPerMs * (lengthMs + 10) * 2;
    assert(bytes <= Math.max(MIB, most), about);
  }
});

Deno.test("a window that is too large for a slow path becomes smaller", () => {
  const slow = path({ bytesPerMs: 1_250 }); // 10 Mbit/s: 1 MiB are 0.8 s
  const sender = new Sender();
  sender.run({ ...slow, offeredBytes: 1000 }, 1);
  sender.run(slow, 20);
  assert(sender.window.bytes < 160 * 1024, `${sender.window.bytes}`);
  assert(sender.window.bytes >= CONNECTION_WINDOW_BYTES_MIN);
});

Deno.test("a queue of others' is taken for the path after a while, ours never", () => {
  const sender = new Sender();
  sender.run(path({ offeredBytes: 1000 }), 1);
  sender.run(path({ othersMs: 100 }), 400);
  const needed = 12_500 * 150;
  assert(sender.window.bytes >= needed * 0.9, `${sender.window.bytes}`);
  sender.run(path(), 3_000); // minutes with nobody but us
  assert(sender.lastMs <= 50 * 1.5 + 20, `${sender.lastMs}`);
});

Deno.test("who has little to say keeps his window", () => {
  const sender = new Sender();
  sender.run(path({ othersMs: 500, offeredBytes: 1000 }), 100);
  assert(sender.window.bytes === MIB);
});
