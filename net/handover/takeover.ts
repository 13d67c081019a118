/**
 * The younger process: takes over the listening sockets of its predecessor.
 *
 * It has them from the start, held: listeners that it opens at their addresses
 * wait until it is ready and says so. The conversation is in
 * `handover_offer.ts`.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { atMost, within } from "../../platform/time/deadline.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { SocketStore } from "../bind/socket_store.ts";
import {
  connectPackets,
  type HandoverFields,
  type HandoverPacket,
  isTrusted,
  type PacketSocket,
} from "./packet_socket.ts";
import { becomeStderr } from "./spawned_process.ts";

/** How long the elder may take for an answer. */
export const TAKEOVER_ANSWER_MS = 5_000;

/** Limit on parts of the answer: an elder that never stops is cut off. */
const MEMORY_PARTS_MAX = 4_096;

/** Why a process cannot take over. */
export type TakeoverProblem =
  /** It runs, and was not to be replaced. */
  | "running"
  /** Something else listens there. */
  | "other"
  /** Another one is about to take its place. */
  | "busy"
  /** It does not answer. */
  | "silent";

/** There is an elder, which refuses. */
export class TakeoverRefused extends Error {
  override readonly name = "TakeoverRefused";
  readonly tunnelCode: Code = "TUN913";

  constructor(readonly problem: TakeoverProblem, readonly pid: number) {
    super(`Cannot take over from process ${pid}: ${problem}`);
  }
}

/** The process that takes over. */
export interface Successor {
  /** Such as `proxy`: the elder must be of the same kind. */
  readonly command: string;
  /** Whether an elder that runs is to go. */
  readonly replace: boolean;
}

export class Takeover {
  readonly #gone = Promise.withResolvers<void>();
  #stderr: number | undefined;
  #answered: ((words?: HandoverFields) => void) | undefined;
  readonly #recalls: boolean;
  #state: "holding" | "over" = "holding";

  /** How many agents are linked to the elder. */
  readonly agents: number;

  private constructor(
    private readonly socket: PacketSocket,
    private readonly store: SocketStore,
    { agents, recalls }: HandoverFields,
    /** The elder's log, if the elder has started this process. */
    stderr: number | undefined,
  ) {
    this.#stderr = stderr;
    this.#recalls = recalls === true;
    this.agents = typeof agents === "number" ? agents : 0;
  }

  /**
   * Requests the sockets.
   *
   * @param address A path, or a name behind `@`.
   * @returns `undefined`: there is no process, or none of ours.
   * @throws {TakeoverRefused}
   * @throws A system error with its `code`.
   */
  static async open(
    address: string,
    { command, replace }: Successor,
    store: SocketStore,
  ): Promise<Takeover | undefined> {
    const socket = connectPackets(address);
    if (socket === undefined) return undefined;
    // A name may belong to any program; another user's is ignored.
    if (!isTrusted(socket.peer)) return void socket.close();
    const received = new Set<string>();
    try {
      socket.send({ ask: "sockets", command, replace, stays: true });
      const { words, descriptors: [stderr] } = await answerOf(socket);
      if (words.yes !== true) throw refusal(words.no, socket.peer.pid);
      await receiveAll(socket, store, received);
      const takeover = new Takeover(socket, store, words, stderr);
      unawaited("socket", takeover.#listen(), () => socket.close());
      return takeover;
    } catch (error) {
      socket.close();
      store.close((key) => received.has(key));
      // One that drains may have ended just now.
      if (isUnanswered(error) && !isAnybodyAt(address)) return undefined;
      throw error;
    }
  }

  /** The elder's process. */
  get pid(): number {
    return this.socket.peer.pid;
  }

  /** Settles when the elder has let go of everything, or is gone. */
  get over(): Promise<void> {
    return this.#gone.promise;
  }

  /** @param each Gets what the elder knows and the successor may go on with. */
  async recall(each: (part: HandoverFields) => void): Promise<void> {
    if (!this.#recalls) return;
    for (let count = 0; count < MEMORY_PARTS_MAX; count++) {
      if (this.#state === "over") return;
      const answer = Promise.withResolvers<HandoverFields | undefined>();
      this.#answered = answer.resolve;
      this.socket.send({ recall: true });
      const heard = Promise.race([answer.promise, this.over]);
      await atMost(systemTimers, TAKEOVER_ANSWER_MS, heard);
      answer.resolve(undefined);
      const memory = (await answer.promise)?.memory;
      if (typeof memory !== "object" || memory === null) return;
      each(memory as HandoverFields);
    }
  }

  /**
   * Accepts with these instead of the elder, or with all, which ends the
   * conversation.
   */
  async take(keys?: readonly string[]): Promise<void> {
    if (this.#state === "over") return;
    const answered = new Promise<void>((resolve) =>
      this.#answered = () => resolve()
    );
    this.socket.send({ take: keys ?? "all" });
    // A process that does not answer does not accept either, and lets go when
    // it wakes.
    await atMost(
      systemTimers,
      TAKEOVER_ANSWER_MS,
      Promise.race([answered, this.over]),
    );
    if (keys === undefined) this.#finish();
    else this.store.start((key) => keys.includes(key));
  }

  /**
   * Redirects stderr to the elder's log, if the elder has started this process:
   * until now the elder has read it, and it will end soon.
   */
  adoptStderr(): void {
    if (this.#stderr !== undefined) becomeStderr(this.#stderr);
    this.#stderr = undefined;
  }

  /** The elder goes on as before. */
  abandon(): void {
    this.#state = "over";
    this.store.close();
    this.socket.close();
  }

  async #listen(): Promise<void> {
    for (;;) {
      const words = await this.socket.receiveFields();
      if (words === null) break;
      this.#answered?.(words);
    }
    if (this.#state === "holding") this.#finish();
    this.socket.close();
  }

  #finish(): void {
    this.#state = "over";
    this.adoptStderr();
    // It stays open: the elder sees by it when this process is gone.
    this.store.start();
    this.#gone.resolve();
  }
}

function refusal(no: unknown, pid: number): TakeoverRefused {
  const problem = no === "running" || no === "busy" ? no : "other";
  return new TakeoverRefused(problem, pid);
}

/** It has ended the conversation. */
function isUnanswered(error: unknown): boolean {
  return error instanceof TakeoverRefused && error.problem === "other";
}

function isAnybodyAt(address: string): boolean {
  const socket = connectPackets(address);
  socket?.close();
  return socket !== undefined;
}

async function receiveAll(
  socket: PacketSocket,
  store: SocketStore,
  received: Set<string>,
): Promise<void> {
  for (;;) {
    socket.send({ more: true });
    const { words, descriptors } = await answerOf(socket);
    for (const descriptor of descriptors) {
      const key = store.put(descriptor, true);
      if (key !== undefined) received.add(key);
    }
    if (words.sockets === 0 || typeof words.sockets !== "number") return;
  }
}

/** @throws {TakeoverRefused} There is none. */
async function answerOf(socket: PacketSocket): Promise<HandoverPacket> {
  const { pid } = socket.peer;
  const packet = await within({
    timers: systemTimers,
    timeoutMs: TAKEOVER_ANSWER_MS,
    late: () => new TakeoverRefused("silent", pid),
  }, socket.receive());
  if (packet === null) throw new TakeoverRefused("other", pid);
  return packet;
}
