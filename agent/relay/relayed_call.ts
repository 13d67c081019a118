/**
 * One discovery stream that is passed on: a program's messages go to a server,
 * the server's messages come back, and each end is passed on.
 *
 * Messages are not looked at. A stream lives as long as both calls: when the
 * server goes it ends with UNAVAILABLE, and its client opens another one.
 *
 * @module
 */

import type {
  CallBody,
  ClientCall,
  ClientCallEvents,
  ServerCall,
  ServerCallEvents,
} from "../../proto/grpc/call.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import {
  type Status,
  StatusCode,
  statusName,
} from "../../proto/grpc/status.ts";

export class RelayedCall implements ServerCallEvents {
  readonly #toServer: ByteRelay;
  #toProgram: ByteRelay | undefined;
  #server: ClientCall | undefined;
  #isOver = false;

  /** @param onOver Called once. */
  constructor(
    private readonly program: ServerCall,
    private readonly onOver: () => void,
  ) {
    this.#toServer = new ByteRelay(program);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** What the call to the server is to tell. */
  readonly events: ClientCallEvents = {
    onMetadata: (metadata) => {
      if (!this.#isOver) this.program.sendMetadata(plain(metadata));
    },
    onBody: (chunk) => {
      if (this.#isOver) this.#server!.consumed(chunk.length);
      else this.#toProgram!.push(chunk);
    },
    onWritable: () => this.#toServer.drain(),
    onStatus: (status, trailers, lost) => {
      if (lost) return this.fail(lossOf(status));
      // After the last message, which may be the one with the reason.
      this.#toProgram!.endWith(() => {
        if (this.#over()) this.program.finish(status, plain(trailers));
      });
    },
  };

  /** There is a call to the server, which takes the program's messages. */
  open(server: ClientCall): void {
    this.#server = server;
    this.#toProgram = new ByteRelay(server);
    this.#toProgram.open(this.program);
    this.#toServer.open(server);
  }

  /** Ends the program's call now; later messages of the server are dropped. */
  fail(status: Status): void {
    if (!this.#over()) return;
    this.program.abort(status);
    this.#server?.cancel();
  }

  onBody(chunk: Uint8Array): void {
    this.#toServer.push(chunk);
  }

  onHalfClose(): void {
    this.#toServer.endWith(() => this.#server!.halfClose());
  }

  onWritable(): void {
    this.#toProgram?.drain();
  }

  onCancel(): void {
    if (this.#over()) this.#server?.cancel();
  }

  /** @returns Whether it was not before. */
  #over(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.onOver();
    return true;
  }
}

function lossOf({ code, message }: Status): Status {
  return {
    code: StatusCode.UNAVAILABLE,
    message: `the discovery server is gone: ${message || statusName(code)}`,
  };
}

/** Without what says how bytes are coded: that was agreed hop by hop. */
function plain(metadata: Metadata): Metadata {
  const copy = new Metadata();
  for (const [name, value] of metadata) {
    if (!name.startsWith("grpc-")) copy.add(name, value);
  }
  return copy;
}

const NO_HEAD = new Uint8Array(0);

/**
 * One direction of a call that is passed on: bytes of messages from one body to
 * another, unchanged, however they are cut.
 *
 * The sender gets its credit back when the bytes have left on the other side,
 * so at most a stream's window waits here, and a stalled reader stalls only its
 * own sender.
 */
export class ByteRelay {
  #to: Pick<CallBody, "room" | "sendFrame" | "awaitRoom"> | undefined;
  readonly #queue: Uint8Array[] = [];
  #ending: (() => void) | undefined;

  constructor(private readonly from: Pick<CallBody, "consumed">) {}

  /** Bytes that wait. */
  get waiting(): number {
    return this.#queue.reduce((sum, { length }) => sum + length, 0);
  }

  /** From now on bytes go there; the waiting ones go first. */
  open(to: Pick<CallBody, "room" | "sendFrame" | "awaitRoom">): void {
    this.#to = to;
    this.drain();
  }

  /** @param chunk Valid during the call. */
  push(chunk: Uint8Array): void {
    const sent = this.#queue.length === 0 ? this.#send(chunk) : 0;
    if (sent === chunk.length) return;
    this.#queue.push(chunk.slice(sent));
    this.#to?.awaitRoom();
  }

  /** There is room. */
  drain(): void {
    while (this.#queue.length > 0) {
      const first = this.#queue[0]!;
      const sent = this.#send(first);
      if (sent < first.length) {
        this.#queue[0] = first.subarray(sent);
        this.#to?.awaitRoom();
        return;
      }
      this.#queue.shift();
    }
    const ending = this.#to && this.#ending;
    if (ending === undefined) return;
    this.#ending = undefined;
    ending();
  }

  /** Calls `ending` when everything has left. */
  endWith(ending: () => void): void {
    this.#ending = ending;
    if (this.#queue.length === 0) this.drain();
  }

  #send(chunk: Uint8Array): number {
    const to = this.#to;
    if (to === undefined) return 0;
    let sent = 0;
    while (sent < chunk.length) {
      const size = Math.min(to.room, chunk.length - sent);
      if (size === 0) break;
      to.sendFrame(NO_HEAD, chunk.subarray(sent, sent + size));
      sent += size;
    }
    if (sent > 0) this.from.consumed(sent);
    return sent;
  }
}
