/**
 * Two connected sockets of a simulated world: bytes take their time, arrive in
 * pieces, are taken in part, and the line can be held up, cut or swallow all.
 *
 * They behave as TCP's do: what has arrived is read before an error is seen, a
 * reset drops what was still on its way, whoever closes with bytes unread
 * resets, and bytes for a closed socket are answered with a reset.
 *
 * @module
 */

import { Ready } from "../../net/poll/poller.ts";
import {
  closedError,
  notifyUser,
  type Stream,
  type StreamUser,
  type Turn,
  WOULD_BLOCK,
} from "../../net/stream/stream.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type { Simulator } from "./simulator.ts";

/** Why a line breaks: somebody gave it up, or nobody knows. */
export type Cut = "reset" | "lost";

/** What a pair is like. */
export interface SocketPairOptions {
  /** For the trace. */
  readonly name: string;
  readonly number: number;
  readonly latencyMs: number;
  /** Bytes that the kernels of both ends hold in one direction. */
  readonly capacityBytes: number;
  /** How many of the first deliveries each way are of a few bytes only. */
  readonly tinyCuts: number;
  /** HTTP/2 runs over it at both ends. */
  readonly isHttp2: boolean;
  readonly alpn?: string;
  /** Whom the near end sees. */
  readonly identity?: PeerIdentity;
  readonly remoteAddress?: string;
}

/** See the module description. */
export class SocketPair {
  readonly near: SimulatedSocket;
  readonly far: SimulatedSocket;

  constructor(
    private readonly sim: Simulator,
    private readonly options: SocketPairOptions,
  ) {
    this.near = new SimulatedSocket(sim, options, "out");
    this.far = new SimulatedSocket(sim, options, "in");
    this.near.join(this.far);
    this.far.join(this.near);
  }

  /** Both ends have been closed. */
  get isOver(): boolean {
    return this.near.isClosed && this.far.isClosed;
  }

  /**
   * Buffers that HTTP/2 wrote last. When a line breaks under a write, its buffer
   * is left to the garbage collector: the kernel may still look at it.
   */
  get abandoned(): readonly ArrayBufferLike[] {
    if (!this.options.isHttp2) return [];
    return [this.near, this.far].flatMap(({ writtenLast }) =>
      writtenLast === undefined ? [] : [writtenLast]
    );
  }

  /** Breaks the line; both ends hear of it, each in its time. */
  cut(kind: Cut): void {
    const { name, number, latencyMs } = this.options;
    this.sim.note(`${name} cut ${kind}`, number);
    for (const end of [this.near, this.far]) {
      end.dropUnderWay();
      // Nothing that is sent from now on may close the gap.
      end.swallow();
      this.sim.post(`${name} cut`, latencyMs, () => end.breakDown(kind));
    }
  }

  /** From now on nothing arrives, and nobody is told. */
  swallow(): void {
    this.sim.note(`${this.options.name} swallows`, this.options.number);
    this.near.swallow();
    this.far.swallow();
  }

  /** Nothing arrives for so long, in one direction or in both. */
  hold(forMs: number, which: "out" | "in" | "both"): void {
    this.sim.note(`${this.options.name} held`, this.options.number, forMs);
    if (which !== "in") this.near.hold(forMs);
    if (which !== "out") this.far.hold(forMs);
  }
}

/** One end. What it has written and its peer has not read is kept here. */
export class SimulatedSocket implements Stream {
  readonly localAddress = "10.0.0.1:8091";
  readonly remoteAddress: string;
  readonly alpn: string;
  readonly identity: PeerIdentity;
  readonly serverName = "";
  readonly descriptor = undefined;
  readonly closesInOrder = true;
  readonly turn: Turn;
  onClosed: (() => void) | undefined;
  readonly #label: string;
  #peer!: SimulatedSocket;
  readonly #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  /** Of those, what has arrived: the peer's read would give it. */
  #arrivedBytes = 0;
  #end: "open" | "sent" | "arrived" = "open";
  #isCarrying = false;
  #isSwallowed = false;
  #heldUntilMs = 0;
  #tinyLeft: number;
  #isClosed = false;
  #broken: Cut | undefined;
  #user: StreamUser | undefined;
  /** The kernel has it already, and does not say so yet. */
  #isLeaving = false;
  writtenLast: ArrayBufferLike | undefined;

  constructor(
    private readonly sim: Simulator,
    private readonly options: SocketPairOptions,
    side: "out" | "in",
  ) {
    this.turn = {
      moved() {},
      isOver: false,
      later: (task) => sim.post("later", 0, task),
    };
    this.#label = `${options.name}${options.number} ${side}`;
    this.#tinyLeft = options.tinyCuts;
    this.alpn = options.alpn ?? "";
    this.identity = options.identity ?? ANONYMOUS;
    this.remoteAddress = options.remoteAddress ?? "10.0.0.7:4711";
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Once, with the other end. */
  join(peer: SimulatedSocket): void {
    this.#peer = peer;
  }

  // --- Stream -------------------------------------------------------------------

  get isOpen(): boolean {
    return !this.#isClosed;
  }

  peerCredentials(): undefined {
    return undefined;
  }

  notify(user: StreamUser): void {
    this.#user = user;
  }

  goOn(): void {
    this.sim.post(`${this.#label} goes on`, 0, () => this.#tell(0));
  }

  read(into: Uint8Array): number {
    if (this.#isClosed) throw closedError();
    const bytes = this.#peer.#take(into);
    if (bytes > 0) return bytes;
    if (this.#broken !== undefined) throw brokenError(this.#broken, "read");
    return this.#peer.#end === "arrived" ? 0 : WOULD_BLOCK;
  }

  write(bytes: Uint8Array): number {
    if (this.#isClosed) throw closedError();
    if (this.#end !== "open") throw new TypeError("Cannot write after FIN");
    if (this.#broken !== undefined) throw brokenError(this.#broken, "write");
    this.writtenLast = bytes.buffer;
    const room = this.options.capacityBytes - this.#queuedBytes;
    if (room <= 0) return 0;
    if (this.sim.chance(8)) return this.#makeRoom();
    const most = Math.min(room, bytes.length);
    const count = this.sim.chance(4) ? 1 + this.sim.prng.below(most) : most;
    this.#queue.push(bytes.slice(0, count));
    this.#queuedBytes += count;
    this.#carry();
    if (this.sim.chance(8)) this.#leaveLate();
    return count;
  }

  flush(): boolean {
    if (this.#isClosed) throw closedError();
    if (this.#broken !== undefined) throw brokenError(this.#broken, "write");
    return !this.#isLeaving;
  }

  closeWrite(): void {
    if (this.#isClosed) throw closedError();
    if (this.#broken !== undefined) {
      throw new Deno.errors.NotConnected("not connected");
    }
    this.#sendEnd();
  }

  close(): void {
    if (this.#isClosed) return;
    const hasUnread = this.#peer.#arrivedBytes > 0;
    this.#release();
    if (hasUnread) this.#sendReset();
    else if (this.#broken === undefined) this.#sendEnd();
  }

  reset(): void {
    if (this.#isClosed) return;
    this.#release();
    this.#sendReset();
  }

  // --- What the world does ---------------------------------------------------

  /** The line behind this end is broken. */
  breakDown(kind: Cut): void {
    if (this.#broken !== undefined) return;
    this.#broken = kind;
    this.dropUnderWay();
    this.#peer.dropUnderWay();
    this.#tell(Ready.ERROR);
  }

  /** What was sent and has not arrived is gone. */
  dropUnderWay(): void {
    let surplus = this.#queuedBytes - this.#arrivedBytes;
    this.#queuedBytes = this.#arrivedBytes;
    while (surplus > 0) {
      const last = this.#queue.pop()!;
      if (last.length > surplus) {
        this.#queue.push(last.subarray(0, last.length - surplus));
      }
      surplus -= last.length;
    }
  }

  swallow(): void {
    this.#isSwallowed = true;
  }

  hold(forMs: number): void {
    this.#heldUntilMs = Math.max(this.#heldUntilMs, this.sim.now() + forMs);
  }

  // --- The way of a byte ---------------------------------------------------

  #tell(hint: number): void {
    const user = this.#user;
    if (user !== undefined) notifyUser(user, hint);
  }

  #makeRoom(): 0 {
    this.sim.post(`${this.#label} room`, 0, () => this.#tell(Ready.WRITE));
    return 0;
  }

  #leaveLate(): void {
    this.#isLeaving = true;
    this.sim.post(`${this.#label} leaves`, 0, () => {
      this.#isLeaving = false;
      this.#tell(Ready.WRITE);
    });
  }

  /** The peer reads. */
  #take(into: Uint8Array): number {
    let bytes = 0;
    while (bytes < into.length && this.#arrivedBytes > 0) {
      const first = this.#queue[0]!;
      const count = Math.min(
        first.length,
        into.length - bytes,
        this.#arrivedBytes,
      );
      into.set(first.subarray(0, count), bytes);
      bytes += count;
      this.#arrivedBytes -= count;
      this.#queuedBytes -= count;
      if (count === first.length) this.#queue.shift();
      else this.#queue[0] = first.subarray(count);
    }
    if (bytes > 0) this.#makeRoom();
    return bytes;
  }

  #sendEnd(): void {
    if (this.#end !== "open") return;
    this.#end = "sent";
    this.#carry();
  }

  /** It drops what was to leave before it, the FIN as well. */
  #sendReset(): void {
    this.dropUnderWay();
    this.swallow();
    this.sim.post(
      `${this.#label} rst`,
      this.options.latencyMs,
      () => this.#peer.breakDown("reset"),
    );
  }

  #release(): void {
    this.#isClosed = true;
    this.onClosed?.();
    queueMicrotask(() => this.#tell(Ready.HANGUP));
  }

  /** @param isMore What goes now was sent together with what just arrived. */
  #carry(isMore = false): void {
    if (this.#isCarrying || this.#isSwallowed) return;
    const isNeeded = this.#queuedBytes > this.#arrivedBytes ||
      this.#end === "sent";
    if (!isNeeded) return;
    this.#isCarrying = true;
    const { latencyMs } = this.options;
    const heldMs = Math.max(0, this.#heldUntilMs - this.sim.now());
    const sixteenths = isMore
      ? this.sim.prng.below(3)
      : 8 + this.sim.prng.below(16);
    const delayMs = heldMs + latencyMs * sixteenths / 16;
    this.sim.post(this.#label, delayMs, () => {
      this.#isCarrying = false;
      if (this.#isSwallowed) return;
      if (this.#heldUntilMs <= this.sim.now()) this.#arrive();
      this.#carry(true);
    });
  }

  #arrive(): void {
    const underWay = this.#queuedBytes - this.#arrivedBytes;
    if (underWay === 0) {
      this.#end = this.#end === "open" ? "open" : "arrived";
    } else if (this.#peer.#isClosed) {
      // Nobody is there to take it.
      this.dropUnderWay();
      return this.breakDown("reset");
    } else {
      const bytes = this.#cut(underWay);
      this.sim.note(this.#label, bytes, underWay);
      this.#arrivedBytes += bytes;
    }
    this.#peer.#tell(Ready.READ);
  }

  #cut(bytes: number): number {
    const { prng } = this.sim;
    if (this.#tinyLeft > 0) {
      this.#tinyLeft--;
      return 1 + prng.below(Math.min(bytes, 24));
    }
    return prng.below(2) === 0 ? bytes : 1 + prng.below(bytes);
  }
}

function brokenError(kind: Cut, operation: "read" | "write"): Error {
  if (kind === "lost") {
    return Object.assign(new Error("no route to host"), { code: "ETIMEDOUT" });
  }
  return operation === "read"
    ? new Deno.errors.ConnectionReset("reset by peer")
    : new Deno.errors.BrokenPipe("broken pipe");
}
