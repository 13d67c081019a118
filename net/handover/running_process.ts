/**
 * A running process of ours, for a process that is not its successor: asks for
 * its identity, or to be replaced by another program. The conversation is in
 * `upgrade_requests.ts`.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { within } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { printable } from "../../platform/text/printable.ts";
import type { PeerCredentials } from "../libc/peer_credentials.ts";
import {
  connectPackets,
  type HandoverFields,
  isTrusted,
  type PacketSocket,
} from "./packet_socket.ts";
import { LAST_WORDS_BYTES_MAX, type UpgradeOutcome } from "./upgrade.ts";

/** How long it may take for an answer that costs it nothing. */
const ANSWER_MS = 5_000;

/** Beyond what the new program may take: the process itself keeps that time. */
const OUTCOME_GRACE_MS = 5_000;

/**
 * Limit on printed answers: a name of the abstract namespace may be any
 * program's, and root asks whichever program has it.
 */
const NAME_MAX = 64;
const SENTENCE_MAX = 500;

/** It was found, and cannot be spoken with, or says no. */
export class ProcessRefusal extends Error {
  override readonly name = "ProcessRefusal";
  readonly tunnelCode: Code = "TUN913";
}

export class RunningProcess {
  private constructor(
    private readonly socket: PacketSocket,
    /** Such as `server`. */
    readonly command: string,
    readonly version: string,
  ) {}

  /**
   * @param address A path, or `@` and a name.
   * @returns `undefined`: no process listens there.
   * @throws {ProcessRefusal}
   * @throws A system error with its `code`, such as EACCES.
   */
  static async find(address: string): Promise<RunningProcess | undefined> {
    const socket = connectPackets(address);
    if (socket === undefined) return undefined;
    const { peer } = socket;
    try {
      // Root may ask any process: a process answers about itself only.
      if (!isTrusted(peer) && Deno.uid() !== 0) {
        throw new ProcessRefusal(`${nameOf(peer)} listens there`);
      }
      socket.send({ ask: "who" });
      const { command, version } = await answerOf(socket, ANSWER_MS);
      if (typeof command !== "string" || typeof version !== "string") {
        throw new ProcessRefusal(
          `${nameOf(peer)} is too old to be asked: start the new program ` +
            "with its flags and --replace",
        );
      }
      return new RunningProcess(
        socket,
        printable(command, NAME_MAX),
        printable(version, NAME_MAX),
      );
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  get pid(): number {
    return this.socket.peer.pid;
  }

  /** Such as `process 7`, and whose, where that is not plain. */
  get name(): string {
    return nameOf(this.socket.peer);
  }

  /**
   * @param file Its whole path.
   * @returns What became of it.
   * @throws {ProcessRefusal}
   */
  async upgrade(file: string, timeoutMs: number): Promise<UpgradeOutcome> {
    this.socket.send({ ask: "upgrade", file, timeoutMs });
    const { no, pid } = await answerOf(this.socket, ANSWER_MS);
    if (typeof pid !== "number") {
      throw new ProcessRefusal(
        `${this.name} refuses: ${printable(String(no), SENTENCE_MAX)}`,
      );
    }
    const answer = await answerOf(this.socket, timeoutMs + OUTCOME_GRACE_MS);
    return answer.done === true ? { kind: "done" } : {
      kind: "failed",
      reason: printable(String(answer.failed), SENTENCE_MAX),
      words: linesOf(String(answer.words ?? "")),
    };
  }

  close(): void {
    this.socket.close();
  }
}

/** A program's output, safe to show. */
function linesOf(words: string): string {
  return words.slice(-LAST_WORDS_BYTES_MAX).split("\n")
    .map((line) => printable(line, LAST_WORDS_BYTES_MAX)).join("\n");
}

/** @throws {ProcessRefusal} There is none. */
async function answerOf(
  socket: PacketSocket,
  timeoutMs: number,
): Promise<HandoverFields> {
  const { peer } = socket;
  // Any user may have taken a name of the abstract namespace before us.
  const remedy = isTrusted(peer)
    ? ""
    : "; if the program runs as another user, its name is taken: start it " +
      "with --handover-socket PATH";
  const refusal = (what: string) =>
    new ProcessRefusal(`${nameOf(peer)} ${what}${remedy}`);
  const answer = await within({
    timers: systemTimers,
    timeoutMs,
    late: () => refusal("does not answer"),
  }, socket.receiveFields());
  if (answer !== null) return answer;
  throw refusal("has ended the conversation");
}

function nameOf(peer: PeerCredentials): string {
  const whose = isTrusted(peer) ? "" : ` of user ${peer.uid}`;
  return `process ${peer.pid}${whose}`;
}
