/**
 * Callers that dial all nodes all the time, send something and compare what
 * comes back.
 *
 * @module
 */

import type { TunnelDialer } from "../../client/tunnel_dialer.ts";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import { type HaStage, NODES, SERVERS } from "./ha_stage.ts";

/** For each server that callers begin with. */
const CALLERS = 2;

const BYTES = 64;

/** Between two dials of one caller: the machine is not only ours. */
const PAUSE_MS = 5;

/** A caller would wait no longer. */
const PATIENCE_MS = 20_000;

/** What callers have seen since the last look. */
export interface Seen {
  readonly dials: number;
  /** Why dials failed. */
  readonly failed: readonly string[];
  /** Connections that stood and were cut: their way had died. */
  readonly cut: number;
  readonly wrong: number;
  readonly slowestMs: number;
}

/** See the module description. */
export class HaLoad {
  readonly #over: Promise<void>;
  #isOver = false;
  #dials = 0;
  #failed: string[] = [];
  #cut = 0;
  #wrong = 0;
  #slowestMs = 0;

  constructor(private readonly stage: HaStage) {
    const callers = Array.from(
      { length: SERVERS * CALLERS },
      (_, at) => this.#call(stage.dialer(at % SERVERS), at),
    );
    this.#over = Promise.all(callers).then(() => {});
  }

  /** What was seen since it was asked last. */
  take(): Seen {
    const seen = {
      dials: this.#dials,
      failed: this.#failed,
      cut: this.#cut,
      wrong: this.#wrong,
      slowestMs: this.#slowestMs,
    };
    this.#dials =
      this.#cut =
      this.#wrong =
      this.#slowestMs =
        0;
    this.#failed = [];
    return seen;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#over;
  }

  async #call(dialer: TunnelDialer, first: number): Promise<void> {
    for (let dial = first; !this.#isOver; dial++) {
      await this.#once(dialer, `node-${dial % NODES}`);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    dialer.close();
  }

  async #once(dialer: TunnelDialer, node: string): Promise<void> {
    const startMs = performance.now();
    this.#dials++;
    let conduit: ConduitProbe;
    try {
      conduit = new ConduitProbe(
        await dialer.dial({
          target: { protocol: "tcp", address: this.stage.target },
          node,
          timeoutMs: PATIENCE_MS,
        }),
      );
    } catch (error) {
      return void this.#failed.push(`${node}: ${(error as Error).message}`);
    }
    this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startMs);
    await this.#compare(conduit);
  }

  async #compare(conduit: ConduitProbe): Promise<void> {
    const sent = crypto.getRandomValues(new Uint8Array(BYTES));
    conduit.send(sent);
    const isWhole = await Promise.race([
      conduit.received(BYTES).then(() => true),
      conduit.closed.then(() => false),
      conduit.ended.then(() => false),
    ]);
    if (!isWhole) this.#cut++;
    else if (!conduit.bytes.every((byte, at) => byte === sent[at])) {
      this.#wrong++;
    }
    conduit.reset("asked enough");
  }
}
