/**
 * What a parent and one of its workers say to each other, and the socket between
 * them.
 *
 * ```
 * parent                              worker
 *   give: sockets, held? ───────────►  (those of its predecessor)
 *   go ─────────────────────────────►  opens its ports
 *                                   ◄─ opened: a copy of each socket; closed
 *                                   ◄─ started: which sockets go first, or last
 *   start, hold, early, handed over ►  another process takes over, or begins to
 *   http: a connection ─────────────►  answers it
 *   shutdown, stop, reload ─────────►
 * ```
 *
 * The parent has a copy of every listening socket of its workers, so what the
 * kernel has queued outlives a worker. One that finds its parent gone lets go of
 * its sockets, and ends when what it carries has ended.
 *
 * @module
 */

import { copyDescriptor } from "../../../net/libc/descriptor_copy.ts";
import { openLibc } from "../../../net/libc/libc.ts";
import type {
  HandoverFields,
  PacketSocket,
} from "../../../net/handover/packet_socket.ts";
import { unawaited } from "../../../platform/errors/internal_errors.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { HttpUse } from "../../../net/admin/passed_http.ts";
import type { ChosenPort } from "./worker_role.ts";

/** To a worker. */
export type Order =
  | { readonly order: "give"; readonly isHeld: boolean }
  | { readonly order: "go" }
  /** Without keys: all, also those that it will open. */
  | { readonly order: "start"; readonly keys?: readonly string[] }
  | { readonly order: "hold"; readonly keys: readonly string[] }
  /** Connections to a path, which the parent accepts. */
  | { readonly order: "pass"; readonly key: string }
  /** Nothing more is passed on to one that was reported as closed. */
  | { readonly order: "noted" }
  /** Another worker cannot accept; then it can again. */
  | { readonly order: "adopt" }
  | { readonly order: "let go" }
  | {
    readonly order: "get ready";
    readonly agents: number;
    /** Another process serves until it is. */
    readonly isServed: boolean;
  }
  | { readonly order: "early"; readonly pid: number }
  | { readonly order: "await successor"; readonly ms: number }
  | { readonly order: "hand over"; readonly pid: number }
  | { readonly order: "successor ended" }
  | {
    readonly order: "shutdown";
    readonly why: string;
    /** Its sockets are kept open beyond this program. */
    readonly areKept: boolean;
  }
  | { readonly order: "stop"; readonly reason: string }
  | { readonly order: "reload" }
  | { readonly order: "http"; readonly use: HttpUse }
  | { readonly order: "tell" };

/** Of a worker. */
export type Report =
  | {
    readonly report: "opened";
    readonly key: string;
    readonly isHeld: boolean;
  }
  | { readonly report: "closed"; readonly key: string }
  | { readonly report: "chose"; readonly port: ChosenPort }
  | {
    readonly report: "started";
    readonly early: readonly string[];
    readonly late: readonly string[];
  }
  | { readonly report: "ready" }
  /** How many agents, or servers, are linked. */
  | { readonly report: "told"; readonly agents: number };

/** How soon it is tried again when the other end is slow to read. */
const RETRY_MS = 10;

/** A worker that has not read so much is stopped, or worse. */
export const OUTBOX_MAX = 10_000;

interface Unsent {
  readonly words: HandoverFields;
  readonly descriptors: readonly number[];
}

export class WorkerChannel<
  Sent extends Order | Report,
  Heard extends Order | Report,
> {
  #unsent: Unsent[] = [];
  #isClosed = false;

  constructor(private readonly socket: PacketSocket) {}

  /** Descriptors may be closed as soon as it returns. */
  send(words: Sent, descriptors: readonly number[] = []): void {
    if (this.#isClosed || this.#unsent.length >= OUTBOX_MAX) return;
    if (
      this.#unsent.length === 0 && this.socket.send({ ...words }, descriptors)
    ) {
      return;
    }
    const copies = descriptors.map((one) => copyDescriptor(one));
    this.#unsent.push({ words: { ...words }, descriptors: copies });
    if (this.#unsent.length === 1) this.#sendLater();
  }

  /** Settles when the other process has gone, or this end was closed. */
  async listen(
    onWords: (words: Heard, descriptors: readonly number[]) => void,
  ): Promise<void> {
    for (;;) {
      const packet = await this.socket.receive();
      if (packet === null) return;
      // Our own program has written it.
      onWords(packet.words as unknown as Heard, packet.descriptors);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.socket.close();
    for (const one of this.#unsent.splice(0)) closeAll(one.descriptors);
  }

  #sendLater(): void {
    systemTimers.after(RETRY_MS, () => {
      while (this.#unsent.length > 0) {
        const { words, descriptors } = this.#unsent[0]!;
        if (!this.socket.send(words, descriptors)) return this.#sendLater();
        this.#unsent.shift();
        closeAll(descriptors);
      }
    });
  }
}

/** Closes descriptors of ours. */
export function closeAll(descriptors: readonly number[]): void {
  for (const one of descriptors) openLibc()?.close(one);
}

/** `listen`, guarded: a slip ends the conversation. */
export function hear<Sent extends Order | Report, Heard extends Order | Report>(
  channel: WorkerChannel<Sent, Heard>,
  onWords: (words: Heard, descriptors: readonly number[]) => void,
  onGone: () => void,
): void {
  const end = () => {
    channel.close();
    onGone();
  };
  unawaited("task", channel.listen(onWords).then(end), end);
}
