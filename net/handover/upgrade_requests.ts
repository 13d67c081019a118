/**
 * What the running process answers to `tunnel upgrade`, which asks at the same
 * socket as a successor.
 *
 * ```
 * tunnel upgrade                     the running process
 *   ask: who ───────────────────────►
 *                                   ◄─ yes: pid, command, version
 *   ask: upgrade, file, timeoutMs ──►
 *                                   ◄─ yes: pid (of the new process)   or no: why
 *                                   ◄─ done                  or failed: why, words
 * ```
 *
 * Only the same user and root can connect there, who could do so without being
 * asked; at a name also those of other containers, who could not. The file is
 * theirs to check; words and environment are those of this process.
 *
 * @module
 */

import type { Tools } from "../../platform/program/tools.ts";
import type { HandoverFields, PacketSocket } from "./packet_socket.ts";
import { Upgrade, UPGRADE_MS, type UpgradeOutcome } from "./upgrade.ts";
import { readProcFile } from "../libc/proc_files.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { VERSION } from "../../platform/process/version.ts";

/** The first process of a container: with its end everything there ends. */
const FIRST_PROCESS = 1;

/** What it needs from outside. */
export interface UpgradeRequestsOptions extends Tools {
  /** Such as `proxy`. */
  readonly command: string;
  /** The successor's arguments, after the program's name. */
  readonly words: readonly string[];
  readonly environment: () => Readonly<Record<string, string>>;
  /** It is ending, or another process takes its place. */
  readonly isBusy: () => boolean;
  /** What the successor writes to stderr. */
  readonly forward: (bytes: Uint8Array) => void;
  /** The id of this process; for tests. */
  readonly pid?: number;
}

export class UpgradeRequests {
  #upgrade: Upgrade | undefined;

  constructor(private readonly options: UpgradeRequestsOptions) {}

  /** Tells a successor where to write from now on. */
  get isUnderWay(): boolean {
    return this.#upgrade !== undefined;
  }

  /** Whether a conversation that begins so is for us. */
  takes({ ask }: HandoverFields): boolean {
    return ask === "who" || ask === "upgrade";
  }

  /** A successor has all sockets. @returns Whether it was started here. */
  handedOver(): boolean {
    const upgrade = this.#upgrade;
    upgrade?.succeeded();
    return upgrade !== undefined;
  }

  /**
   * Settles when the conversation is over.
   *
   * @param isNamed The request came by a name that every process of the network
   *   namespace can see, even those in containers, where a path means another
   *   file.
   */
  async serve(
    socket: PacketSocket,
    first: HandoverFields,
    isNamed: boolean,
  ): Promise<void> {
    for (
      let words: HandoverFields | null = first;
      words !== null;
      words = await socket.receiveFields()
    ) {
      if (words.ask === "who") socket.send(this.#facts);
      else if (words.ask === "upgrade") {
        const isStrange = isNamed && !isOfOurContainer(socket.peer.pid);
        if (isStrange) return void socket.send({ no: STRANGER });
        return await this.#serve(socket, words);
      } else return;
    }
  }

  get #facts(): HandoverFields {
    const { command, pid = Deno.pid } = this.options;
    return { yes: true, pid, command, version: VERSION };
  }

  async #serve(socket: PacketSocket, words: HandoverFields): Promise<void> {
    const outcome = Promise.withResolvers<UpgradeOutcome>();
    const problem = this.#begin(words, outcome.resolve);
    if (problem !== undefined) return void socket.send({ no: problem });
    socket.send({ yes: true, pid: this.#upgrade!.pid });
    const came = await outcome.promise;
    if (came.kind === "done") socket.send({ done: true });
    else socket.send({ failed: came.reason, words: came.words });
  }

  /** @returns Why it cannot be. */
  #begin(
    { file, timeoutMs }: HandoverFields,
    resolve: (outcome: UpgradeOutcome) => void,
  ): string | undefined {
    const { isBusy, environment, pid = Deno.pid } = this.options;
    const { timers, log, forward } = this.options;
    if (typeof file !== "string" || !file.startsWith("/")) {
      return "it wants the file's whole path";
    }
    if (this.isUnderWay || isBusy()) {
      return "another process is about to take its place, or it is ending";
    }
    if (pid === FIRST_PROCESS) {
      return "it is the first process of a container, which ends together " +
        "with it: start a container of the new version beside it";
    }
    try {
      this.#upgrade = Upgrade.begin({
        start: { file, words: this.#words, environment: environment() },
        timeoutMs: typeof timeoutMs === "number" && timeoutMs > 0
          ? timeoutMs
          : UPGRADE_MS,
        ...{ timers, log, forward },
        over: (outcome) => {
          this.#upgrade = undefined;
          resolve(outcome);
        },
      });
    } catch (error) {
      return `it cannot start ${file}: ${messageOf(error)}`;
    }
    return this.#upgrade === undefined
      ? "it has no C library to start programs with"
      : undefined;
  }

  get #words(): readonly string[] {
    const { words } = this.options;
    return words.includes(REPLACE) ? words : [...words, REPLACE];
  }
}

const REPLACE = "--replace";

const STRANGER =
  "only processes of its own container, or of its machine where " +
  "it is in none, may ask at a name with @; ask there, or give both " +
  "--handover-socket=PATH";

/** @returns False when it is unknown: it may be gone, or hidden. */
export function isOfOurContainer(pid: number): boolean {
  // None that can be seen from here.
  if (pid <= 0) return false;
  const depth = depthOf(`${pid}`);
  return depth !== undefined && depth === depthOf("self");
}

/**
 * The number of process namespaces in which it has an id, as far as can be seen
 * here.
 */
function depthOf(process: string): number | undefined {
  const ids = /^NSpid:(.*)$/m.exec(
    readProcFile(`/proc/${process}/status`) ?? "",
  )?.[1];
  return ids?.trim().split(/\s+/).length;
}
