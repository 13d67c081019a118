/**
 * A conversation of two processes of one program over a packet socket, with
 * descriptors: what the other end is slow to read waits here.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { closeAll, copyDescriptor } from "../libc/descriptors.ts";
import type { HandoverFields, PacketSocket } from "./packet_socket.ts";

/** How soon it is tried again when the other end is slow to read. */
const RETRY_MS = 10;

/** A process that has not read so much is stopped, or worse. */
export const OUTBOX_MAX = 10_000;

interface Unsent {
  readonly words: HandoverFields;
  readonly descriptors: readonly number[];
}

export class PacketChannel<Sent extends HandoverFields, Heard> {
  #unsent: Unsent[] = [];
  #isClosed = false;

  constructor(private readonly socket: PacketSocket) {}

  /** Descriptors may be closed as soon as it returns. */
  send(words: Sent, descriptors: readonly number[] = []): void {
    if (this.#isClosed || this.#unsent.length >= OUTBOX_MAX) return;
    if (
      this.#unsent.length === 0 && this.socket.send(words, descriptors)
    ) {
      return;
    }
    const copies = descriptors.map((one) => copyDescriptor(one));
    this.#unsent.push({ words, descriptors: copies });
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

/** `listen`, guarded: an internal error ends the conversation. */
export function hear<Sent extends HandoverFields, Heard>(
  channel: PacketChannel<Sent, Heard>,
  onWords: (words: Heard, descriptors: readonly number[]) => void,
  onGone: () => void,
): void {
  const end = () => {
    channel.close();
    onGone();
  };
  unawaited("task", channel.listen(onWords).then(end), end);
}
