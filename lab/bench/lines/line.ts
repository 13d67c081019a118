/**
 * A long, narrow, lossy line between two network namespaces of its own, and
 * programs that are started at its ends. Needs root.
 *
 * The server's end is 10.99.0.1 and the agent's 10.99.0.2. Ports need no luck
 * there: each namespace has all of them. Unix sockets are in neither, so a
 * frontend on one is reached from anywhere.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

export const SERVER_HOST = "10.99.0.1";
export const AGENT_HOST = "10.99.0.2";

/** Which end of the line: the server's or the agent's. */
export type LineEnd = "server" | "agent";

/** What the line does to packets, the same each way. */
export interface LineShape {
  readonly rttMs: number;
  /**
   * Behind it is a queue of one bandwidth-delay product (256 KiB at least)
   * that drops what does not fit; 0: no limit, and so no queue.
   */
  readonly mbit: number;
  /** Probability that a packet is lost. */
  readonly loss: number;
  /** The same seed loses the same packets, by number. */
  readonly seed: number;
}

/** What the line did, by direction. */
export interface LineReport {
  readonly a_to_b: DirectionReport;
  readonly b_to_a: DirectionReport;
}

export interface DirectionReport {
  readonly packets: number;
  readonly bytes: number;
  readonly lost: number;
  readonly dropped_at_full_queue: number;
  readonly longest_queue_bytes: number;
}

const NAMESPACES = { server: "nsA", agent: "nsB" } as const;

const CONNECT_TIMEOUT_MS = 20_000;
const POLL_MS = 50;
const SETTLE_MS = 600;

let lines = 0;

/** See the module description. */
export class Line {
  private constructor(
    private readonly emulator: Child,
    private readonly suffix: string,
  ) {}

  /** Sets the line up. */
  static async open(workspace: Workspace, shape: LineShape): Promise<Line> {
    const suffix = `${Deno.pid}${LETTERS[lines++ % LETTERS.length]}`;
    const emulator = new Child({
      name: "line",
      command: [
        await findPeer("wan"),
        `-name=${suffix}`,
        `-delay=${shape.rttMs / 2}ms`,
        `-mbit=${shape.mbit}`,
        `-loss=${shape.loss}`,
        `-seed=${shape.seed}`,
      ],
      logFile: workspace.path("line.log"),
    });
    await emulator.untilPrinted(/^ready$/m);
    return new Line(emulator, suffix);
  }

  /** The words that start a command at one end. */
  prefix(end: LineEnd): readonly string[] {
    // `ip` becomes the command, so the child's pid is the command's.
    return ["ip", "netns", "exec", `${NAMESPACES[end]}${this.suffix}`];
  }

  /**
   * Waits for so many TCP connections from the agent's end to the server's.
   *
   * @throws {Error} When there are fewer after 20 s.
   */
  async untilConnected(connections: number): Promise<void> {
    const [program, ...words] = this.prefix("server");
    const deadline = Date.now() + CONNECT_TIMEOUT_MS;
    for (;;) {
      const { stdout } = await new Deno.Command(program!, {
        args: [...words, "ss", "-tnH", "state", "established"],
      }).output();
      const seen = new TextDecoder().decode(stdout).split("\n")
        .filter((line) => line.includes(AGENT_HOST)).length;
      if (seen >= connections) break;
      if (Date.now() > deadline) {
        throw new Error(`Cannot see ${connections} links: there are ${seen}`);
      }
      await sleep(POLL_MS);
    }
    // A connection is no link yet: handshake and hellos take four round trips.
    await sleep(SETTLE_MS);
  }

  /** Takes the line down, after everything at its ends has been stopped. */
  async close(): Promise<LineReport> {
    await this.emulator.stop();
    const printed = await this.emulator.logTail();
    return JSON.parse(printed.trim().split("\n").at(-1)!) as LineReport;
  }
}

/** Names of devices have 15 characters at most, so one letter has to do. */
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
