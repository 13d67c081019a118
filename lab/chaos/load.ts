/**
 * The callers of a run: short requests, conduits that stay, and bulk, through
 * every entrance to every target. Modest on purpose: it looks for what breaks,
 * not for what is slow.
 *
 * A caller that one server does not serve asks the next one, as kube-apiserver
 * and our own clients with several servers do. A dial has failed when nobody
 * served it; who refused on the way is written down.
 *
 * @module
 */

import type { Prng } from "../../tests/support/memory/prng.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import { writeAll } from "../../tests/support/peers/sockets.ts";
import { sameBytes } from "../../proto/bytes/byte_arrays.ts";
import { Conversation, type Manner } from "./conversation.ts";
import {
  type Entrance,
  OF_OUR_CALLERS,
  type Protocol,
  type Wire,
} from "./entrance.ts";
import type { Attempt, Ledger, Path } from "./ledger.ts";

/** How long a caller waits for one server; our own client tries them itself. */
const PATIENCE_MS = 3_000;
const FORWARD_PATIENCE_MS = 14_000;

/** Of one asker; there is one for each protocol and target. */
const ASK_PAUSE_MS = 300;
const ASK: Manner = { pieceBytes: 700, pauseMs: 1, windowBytes: 8_000 };
const ASK_PIECES_MAX = 6;

const STAY: Manner = { pieceBytes: 300, pauseMs: 150, windowBytes: 900 };
const BULK: Manner = {
  pieceBytes: 32_768,
  pauseMs: 125,
  windowBytes: 1 << 20,
};

/** Between a conduit that broke and the next one in its place. */
const AGAIN_MS = 300;

/** A conduit in which nothing moved for this long is not well. */
const WELL_MS = 700;

/** How long a caller waits for the end of what it has ended itself. */
const END_MS = 5_000;

/** The greeting's line is an address. */
const GREETING_BYTES_MAX = 40;

/** What the load is made of. */
export interface LoadPlan {
  readonly entrances: readonly Entrance[];
  readonly targets: readonly string[];
  /** The machine that has this address, when there is one. */
  readonly machineAt: (address: string) => string | undefined;
}

/** A conduit that is meant to be there always. */
interface Stayer {
  readonly entrance: Entrance;
  readonly target: string;
  readonly manner: Manner;
  talk: Conversation | undefined;
  openedMs: number;
  /** Its end is wanted, in order; the next one follows at once. */
  isEnding: boolean;
}

/** A caller of short requests, and how its last one went. */
interface Asker {
  readonly protocol: Protocol;
  readonly target: string;
  turn: number;
  /** Of the last dial that came through at the first attempt. */
  goodMs: number;
  isGood: boolean;
}

/** See the module description. */
export class Load {
  readonly #stayers: Stayer[] = [];
  readonly #askers: Asker[] = [];
  #running: Promise<void>[] = [];
  #isOver = true;

  constructor(
    private readonly plan: LoadPlan,
    private readonly ledger: Ledger,
    private readonly prng: Prng,
  ) {
    const stay = (entrance: Entrance, target: string, manner: Manner) =>
      this.#stayers.push({
        ...{ entrance, target, manner },
        ...{ talk: undefined, openedMs: 0, isEnding: false },
      });
    for (const [index, target] of plan.targets.entries()) {
      const staying = plan.entrances
        .filter(({ saysFirst }) => saysFirst === undefined);
      for (const entrance of staying) stay(entrance, target, STAY);
      stay(staying[index % staying.length]!, target, BULK);
      for (const protocol of new Set(plan.entrances.map(protocolOf))) {
        this.#askers.push({
          ...{ protocol, target, turn: index, goodMs: 0, isGood: false },
        });
      }
    }
  }

  start(): void {
    this.#isOver = false;
    this.#running = [
      ...this.#stayers.map((stayer) => this.#stay(stayer)),
      ...this.#askers.map((asker) => this.#ask(asker)),
    ];
  }

  /** Ends every conduit in order; those that cannot are given up. */
  async stop(): Promise<void> {
    this.#isOver = true;
    const late = setTimeout(() => {
      for (const { talk } of this.#stayers) talk?.giveUp();
    }, END_MS);
    await Promise.all(this.#running);
    clearTimeout(late);
  }

  /**
   * Replaces conduits that were opened since: they may go ways that no caller
   * knows of, such as over another server while there was no other way.
   */
  renew(sinceMs: number): void {
    for (const stayer of this.#stayers) {
      if (stayer.openedMs >= sinceMs) stayer.isEnding = true;
    }
  }

  /** What is not as it should be; nothing when all has been well since. */
  complaints(sinceMs: number): string[] {
    const found: string[] = [];
    for (const { entrance, target, talk, isEnding } of this.#stayers) {
      const via = entrance.server ?? entrance.protocol;
      if (talk === undefined || isEnding) {
        found.push(`no conduit by ${via} to ${target}`);
      } else if (talk.waitingMs > WELL_MS) {
        found.push(`nothing moves by ${via} to ${target}`);
      }
    }
    for (const { protocol, target, goodMs, isGood } of this.#askers) {
      if (isGood && goodMs >= sinceMs) continue;
      found.push(`no dial by ${protocol} to ${target}`);
    }
    return found;
  }

  async #stay(stayer: Stayer): Promise<void> {
    const { entrance, target, manner } = stayer;
    while (!this.#isOver) {
      try {
        const { wire, agent } = await this.#open(entrance, target);
        const path = pathOf(entrance, target, agent);
        const key = this.prng.below(2 ** 31);
        stayer.talk = new Conversation(path, wire, manner, key, this.ledger);
        stayer.openedMs = Date.now();
        stayer.isEnding = false;
        await stayer.talk.talk(() => this.#isOver || stayer.isEnding);
      } catch {
        // Askers count the dials that fail; this one only waits for its own.
      }
      stayer.talk = undefined;
      await sleep(AGAIN_MS);
    }
  }

  async #ask(asker: Asker): Promise<void> {
    const { protocol, target } = asker;
    const entrances = this.plan.entrances
      .filter((entrance) => entrance.protocol === protocol);
    await sleep(this.prng.below(ASK_PAUSE_MS));
    while (!this.#isOver) {
      const first = asker.turn++ % entrances.length;
      const order = [...entrances.slice(first), ...entrances.slice(0, first)];
      await this.#askOnce(asker, order, target);
      await sleep(ASK_PAUSE_MS);
    }
  }

  async #askOnce(asker: Asker, order: readonly Entrance[], target: string) {
    const atMs = Date.now();
    const attempts: Attempt[] = [];
    for (const entrance of order) {
      try {
        const { wire, agent } = await this.#open(entrance, target);
        const path = pathOf(entrance, target, agent);
        const tookMs = Date.now() - atMs;
        const isGood = true;
        this.ledger.dials.push({ atMs, tookMs, path, attempts, isGood });
        asker.isGood = attempts.length === 0;
        asker.goodMs = atMs;
        const key = this.prng.below(2 ** 31);
        const talk = new Conversation(path, wire, ASK, key, this.ledger);
        let left = 1 + this.prng.below(ASK_PIECES_MAX);
        const late = setTimeout(() => talk.giveUp(), 60_000);
        await talk.talk(() => left-- <= 0);
        clearTimeout(late);
        return;
      } catch (error) {
        const server = entrance.server ?? entrance.protocol;
        attempts.push({ server, cause: causeOf(error) });
      }
    }
    asker.isGood = false;
    this.ledger.dials.push({
      atMs,
      tookMs: Date.now() - atMs,
      path: { protocol: asker.protocol, target },
      attempts,
      isGood: false,
    });
  }

  /** Until the target has said from where it was dialed. */
  async #open(
    entrance: Entrance,
    target: string,
  ): Promise<{ wire: Wire; agent: string }> {
    const patienceMs = OF_OUR_CALLERS.includes(entrance.protocol)
      ? FORWARD_PATIENCE_MS
      : PATIENCE_MS;
    const abort = new AbortController();
    const late = setTimeout(
      () => abort.abort(new Error(`no answer in ${patienceMs} ms`)),
      patienceMs,
    );
    try {
      const wire = await entrance.open(target, abort.signal);
      const giveUp = () => wire.close();
      abort.signal.addEventListener("abort", giveUp);
      try {
        const { saysFirst } = entrance;
        if (saysFirst !== undefined) await writeAll(wire, saysFirst);
        const address = await readGreeting(wire);
        if (saysFirst !== undefined) await readEcho(wire, saysFirst);
        const agent = this.plan.machineAt(address) ?? target;
        return { wire, agent };
      } catch (error) {
        wire.close();
        abort.signal.throwIfAborted();
        throw error;
      } finally {
        abort.signal.removeEventListener("abort", giveUp);
      }
    } finally {
      clearTimeout(late);
    }
  }
}

/** One line: answers of CONNECT have heads behind it. */
function causeOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split(/[\r\n]/, 1)[0]!;
}

function pathOf(
  { protocol, server }: Entrance,
  target: string,
  agent: string,
): Path {
  const openedMs = Date.now();
  const path = { protocol, target, agent, openedMs };
  return server === undefined ? path : { ...path, server };
}

function protocolOf({ protocol }: Entrance): Protocol {
  return protocol;
}

/** What was said first came through whole. */
async function readEcho(wire: Wire, said: Uint8Array): Promise<void> {
  const echo = new Uint8Array(said.length);
  for (let at = 0; at < echo.length;) {
    const count = await wire.read(echo.subarray(at));
    if (count === null) {
      throw new Error(`ended after ${at} of ${echo.length} bytes said first`);
    }
    at += count;
  }
  if (!sameBytes(echo, said)) throw new Error("what was said first is wrong");
}

/** The target's first line: from where it was dialed. */
async function readGreeting(wire: Wire): Promise<string> {
  const byte = new Uint8Array(1);
  let line = "";
  while (line.length < GREETING_BYTES_MAX) {
    if (await wire.read(byte) === null) {
      throw new Error("ended before the target said anything");
    }
    if (byte[0] === 0x0a) return line;
    line += String.fromCharCode(byte[0]!);
  }
  throw new Error(`the target said ${JSON.stringify(line)}`);
}
