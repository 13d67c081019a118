/**
 * Two conduits over one connection in any order of what can be done with them:
 * bytes arrive as they were sent, ends are told for what they are, and it is
 * always over at last.
 */

import { assert, assertEquals } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import {
  onPath,
  pollerWith,
  SOCKET_KINDS,
  WAKEUPS,
} from "../../tests/support/memory/socket_kinds.ts";
import { conduitOf } from "./stream_conduit.ts";
import { denoStream } from "./platform_stream.ts";
import type { Stream } from "./stream.ts";
import { connectPolledTcp, connectPolledUnix } from "./polled_connect.ts";
import { listenPolledTcp, listenPolledUnix } from "../bind/polled_listener.ts";
import type { Poller } from "../poll/poller.ts";

const RUNS = 60;
const STEPS = 14;
const NEVER = new AbortController().signal;

/** From a crumb to what neither batch nor kernel takes at once. */
const SIZES = [1, 7, 1_000, 65_535, 131_072, 400_000];

/** What is sent, by everybody, from the beginning. */
const script = new Prng(42).bytes(STEPS * SIZES.at(-1)!);

/** What one end has done, and what must come of it. */
class End {
  readonly probe: ConduitProbe;
  sentBytes = 0;
  hasEnded = false;
  hasReset = false;

  constructor(stream: Stream) {
    this.probe = new ConduitProbe(conduitOf(stream));
  }

  get isDone(): boolean {
    return this.hasEnded || this.hasReset || this.probe.end !== undefined;
  }

  step(prng: Prng, mayReset: boolean): void {
    switch (prng.below(mayReset ? 12 : 11)) {
      case 0:
        return this.end();
      case 1:
      case 2:
        return this.probe.stopReading();
      case 3:
      case 4:
      case 5:
        return void this.probe.startReading();
      case 11:
        return this.reset();
      default:
        return this.send(prng.pick(SIZES));
    }
  }

  send(bytes: number): void {
    if (this.isDone) return;
    const from = this.sentBytes;
    this.sentBytes += bytes;
    this.probe.send(script.subarray(from, this.sentBytes));
  }

  end(): void {
    if (this.isDone) return;
    this.hasEnded = true;
    this.probe.finish();
  }

  reset(): void {
    if (this.probe.end !== undefined) return;
    this.hasReset = true;
    this.probe.reset("enough");
  }
}

async function check(
  streams: readonly [Stream, Stream],
  prng: Prng,
  isTcp: boolean,
): Promise<void> {
  const ends = [new End(streams[0]), new End(streams[1])] as const;
  const mayReset = prng.below(3) === 0;
  for (let step = 0; step < STEPS; step++) {
    prng.pick(ends).step(prng, mayReset);
    for (let turns = prng.below(4); turns > 0; turns--) await settled();
  }
  for (const end of ends) {
    end.probe.startReading();
    end.end();
  }
  await Promise.all(ends.map(({ probe }) => probe.closed));
  compare(ends[0], ends[1], isTcp);
  compare(ends[1], ends[0], isTcp);
}

/** What `to` heard of `from`. */
function compare(from: End, to: End, isTcp: boolean): void {
  const { bytes, end } = to.probe;
  assert(bytes.length <= from.sentBytes);
  const sent = script.subarray(0, bytes.length);
  assert(bytes.every((byte, at) => byte === sent[at]), "other bytes");
  if (!from.hasReset && !to.hasReset) {
    assertEquals(bytes.length, from.sentBytes, "bytes are missing");
    assertEquals(end, { kind: "clean" });
  } else if (to.hasReset) {
    assertEquals(end, { kind: "reset", reason: "enough" });
  } else if (isTcp && !from.hasEnded) {
    assertEquals(end!.kind, "reset");
  }
}

function testOrders(
  name: string,
  isTcp: boolean,
  pollers: readonly (() => Poller | undefined)[],
  connect: (
    pollers: readonly (Poller | undefined)[],
  ) => Promise<readonly [Stream, Stream]>,
): void {
  Deno.test(`${name}: any order ends, and loses nothing`, async () => {
    const seeds = Prng.fromEnvironment();
    for (let run = 0; run < RUNS; run++) {
      const prng = new Prng(seeds.below(2 ** 32));
      const waiting = pollers.map((make) => make());
      const sockets = await connect(waiting);
      try {
        await check(sockets, prng, isTcp);
      } catch (cause) {
        throw new Error(`seed ${seeds.seed}, run ${run}`, { cause });
      }
      for (const poller of waiting) assertEquals(poller?.wakeupKind, undefined);
    }
  });
}

for (const { name, isTcp, wakeup, pair } of SOCKET_KINDS) {
  const poller = () => wakeup && pollerWith(wakeup);
  testOrders(
    `${name} and the platform's`,
    isTcp,
    [poller],
    async ([poller]) => {
      const { peer, stream } = await pair(poller);
      return [stream, denoStream(peer)];
    },
  );
}

for (const [name, wakeup] of Object.entries(WAKEUPS)) {
  const poller = () => pollerWith(wakeup);
  const both = `accepted and dialed`;
  testOrders(`${both} TCP (${name})`, true, [poller], async ([poller]) => {
    const at = { hostname: "::1", port: 0 };
    const listener = listenPolledTcp(at, 1, poller)!;
    const sockets = await Promise.all([
      listener.accept(),
      connectPolledTcp(listener.address, NEVER, poller)!,
    ]);
    listener.close();
    return sockets;
  });
  testOrders(
    `${both} unix, each with its own (${name})`,
    false,
    [poller, poller],
    ([one, other]) =>
      onPath(async (path) => {
        const listener = listenPolledUnix(path, 1, 0o770, one)!;
        const sockets = await Promise.all([
          listener.accept(),
          connectPolledUnix(path, NEVER, other)!,
        ]);
        listener.close();
        return sockets;
      }),
  );
}
