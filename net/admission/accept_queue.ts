/**
 * Accepts connections for a TLS server, and does nothing for them before they
 * have sent a ClientHello.
 *
 * A silent connection costs its descriptor and an entry in a table; to refuse
 * one costs two system calls. So the many connections of a crowd or a flood
 * cost little each, and the handshake, which costs much, begins only for a
 * ClientHello that is complete (no slowloris of bytes gets that far), in turns
 * (`HandshakeQueue`), and for sources that broke rules one at a time
 * (`Penalty`).
 *
 * Needs the C library; where there is none, the platform accepts, and
 * `platform_acceptor.ts` does what is possible then.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { ACCEPT_PAUSE_MS, refusalOn } from "../bind/accept_loop.ts";
import { mayTakeDescriptor } from "../libc/free_descriptors.ts";
import {
  guarded,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { lingerInKernel } from "../libc/kernel_linger.ts";
import { lastError, type LibC, openLibc } from "../libc/libc.ts";
import type { Stream } from "../stream/stream.ts";
import type { PolledListener } from "../bind/polled_listener.ts";
import {
  type Pollable,
  type Poller,
  Ready,
  sharedPoller,
} from "../poll/poller.ts";
import { StreamDescriptor } from "../stream/stream_descriptor.ts";
import {
  SOCKET_ADDRESS_BYTES,
  SocketAddressReader,
} from "../libc/socket_address.ts";
import { Errno, systemError } from "../libc/system_error.ts";
import { tuneDescriptor } from "../libc/tcp_options.ts";
import { HELLO_BYTES_MAX, isWholeHello } from "./client_hello.ts";
import type {
  AdmittedConnection,
  ConnectionLimiter,
} from "./connection_limiter.ts";
import type { HandshakeQueue } from "./handshake_queue.ts";
import { PenaltyQueue } from "./penalty_queue.ts";

/**
 * How long connections are accepted before others have a turn: a handful of
 * them. What the kernel holds meanwhile is bounded by the backlog.
 */
export const ACCEPT_TURN_MS = 0.2;

const SOCK_FLAGS = 0x80800; // SOCK_CLOEXEC, SOCK_NONBLOCK
const MSG_PEEK = 2;

/** What a `AcceptQueue` needs from outside. */
export interface AcceptQueueOptions {
  readonly limiter: ConnectionLimiter;
  readonly queue: HandshakeQueue;
  readonly timers: Timers;
  readonly random: () => number;
  /** How long a peer may take to send its ClientHello. */
  readonly helloTimeoutMs: number;
  /** Begins a handshake; what was admitted leaves when the connection ends. */
  readonly letIn: (arrival: Arrival) => void;
  /** One line per burst of failures; accepting goes on. */
  readonly onProblem: (line: string) => void;
}

/** A connection whose handshake may begin. */
export interface Arrival {
  /** The receiver's to close. */
  readonly stream: Stream;
  readonly admitted: AdmittedConnection;
  /** Set by the receiver: its place is wanted for another, so close it. */
  onEvicted: () => void;
}

/** @param listener There is one only where there is a C library. */
export function openAcceptQueue(
  listener: PolledListener,
  options: AcceptQueueOptions,
): AcceptQueue {
  return new AcceptQueue(
    listener,
    { library: openLibc()!, poller: sharedPoller()! },
    options,
  );
}

interface Kernel {
  readonly library: LibC;
  readonly poller: Poller;
}

export class AcceptQueue implements Pollable {
  readonly #listener: PolledListener;
  readonly #kernel: Kernel;
  readonly #options: AcceptQueueOptions;
  readonly #room: PenaltyQueue<Visitor>;
  #isClosed = false;
  #isFailing = false;

  constructor(
    listener: PolledListener,
    kernel: Kernel,
    options: AcceptQueueOptions,
  ) {
    this.#listener = listener;
    this.#kernel = kernel;
    this.#options = options;
    const { timers, random } = options;
    this.#room = new PenaltyQueue({
      timers,
      random,
      letIn: (visitor) => this.#line(visitor),
    });
    listener.watchedBy(this);
  }

  /** Stops accepting; accepted connections go on. */
  close(): void {
    this.#isClosed = true;
    this.#listener.close();
  }

  onReady(): void {
    const { timers } = this.#options;
    const untilMs = timers.now() + ACCEPT_TURN_MS;
    while (this.#isAccepting && this.#acceptOne()) {
      if (timers.now() < untilMs) continue;
      return this.#kernel.poller.goOn(this);
    }
  }

  /** That connection is lost; those behind it are not. */
  onFault(): void {
    if (!this.#isClosed) this.#kernel.poller.goOn(this);
  }

  /** Another process may have the listener by now. */
  get #isAccepting(): boolean {
    return !this.#isClosed && this.#listener.isOpen;
  }

  /** @returns Whether there may be another one. */
  #acceptOne(): boolean {
    const { library } = this.#kernel;
    const { descriptor } = this.#listener;
    nameLength[0] = SOCKET_ADDRESS_BYTES;
    const accepted = library.accept4(
      descriptor,
      name,
      nameLengthBytes,
      SOCK_FLAGS,
    );
    if (accepted >= 0) {
      if (!mayTakeDescriptor("link")) return this.#turnAway(accepted);
      this.#isFailing = false;
      this.#welcome(accepted);
      return true;
    }
    const number = lastError(library);
    if (number === Errno.EAGAIN) return false;
    if (number === Errno.EINTR || number === ECONNABORTED) return true;
    this.#rest(systemError(number));
    return false;
  }

  /** What is left is for health and administration. */
  #turnAway(descriptor: number): true {
    this.#kernel.library.close(descriptor);
    if (!this.#isFailing) {
      const { hostname, port } = this.#listener.address;
      this.#options.onProblem(refusalOn(hostPort(hostname, port)));
    }
    this.#isFailing = true;
    return true;
  }

  /** There is no descriptor left, or no memory. */
  #rest({ message }: Error): void {
    const { timers, onProblem } = this.#options;
    if (!this.#isFailing) {
      onProblem(
        `Cannot accept an agent's connection: ${message}; trying again`,
      );
    }
    this.#isFailing = true;
    timers.after(ACCEPT_PAUSE_MS, () => this.onReady());
  }

  #welcome(descriptor: number): void {
    const { limiter, timers, helloTimeoutMs } = this.#options;
    const address = hostPort(names.host(0) ?? "", names.port(0));
    const visitor: Visitor = new Visitor(this.#kernel, descriptor, address, {
      spoke: () => this.#onSpoken(visitor),
      gone: () => this.#room.leave(visitor.admitted!.penalty!, visitor),
    });
    try {
      const admitted = limiter.arrive(address, () => visitor.close());
      if (admitted === undefined) return visitor.close();
      visitor.admitted = admitted;
      if (this.#isTooMany(admitted)) return this.#refuse(visitor);
      visitor.wait(timers.after(helloTimeoutMs, () => visitor.close()));
    } catch (error) {
      reportInternalError("accept", error);
      visitor.close();
    }
  }

  #isTooMany(admitted: AdmittedConnection): boolean {
    const penalty = admitted.penalty!;
    return penalty.isOn(this.#options.timers.now()) &&
      this.#room.isFull(penalty);
  }

  #refuse(visitor: Visitor): void {
    visitor.admitted!.refusePenalized();
    visitor.close();
  }

  #onSpoken(visitor: Visitor): void {
    const penalty = visitor.admitted!.penalty!;
    // A new connection does not overtake those that wait.
    if (!penalty.isOn(this.#options.timers.now())) return this.#line(visitor);
    if (!this.#room.wait(penalty, visitor)) this.#refuse(visitor);
  }

  /** @returns `undefined`: the kernel has no memory for it. */
  #arrive(visitor: Visitor, localAddress: string): Arrival | undefined {
    try {
      return visitor.arrive(this.#options.timers, localAddress);
    } catch (error) {
      visitor.admitted!.leave();
      this.#options.onProblem(
        `Cannot serve an agent's connection: ${(error as Error).message}`,
      );
      return undefined;
    }
  }

  /** Its turn comes behind the connections that wait already. */
  #line(visitor: Visitor): void {
    const begin = () => {
      const { admitted } = visitor;
      if (!admitted!.takeHandshake()) return visitor.close();
      const { letIn } = this.#options;
      const { hostname, port } = this.#listener.address;
      const arrival = this.#arrive(visitor, hostPort(hostname, port));
      if (arrival === undefined) return;
      guarded("accept", () => letIn(arrival), () => visitor.close());
    };
    this.#options.queue.add({ isGone: () => visitor.isOver, begin });
  }
}

/** Events of a pending connection. */
interface VisitorEvents {
  spoke(): void;
  gone(): void;
}

/**
 * A connection whose ClientHello is not complete, or whose turn has not come.
 */
class Visitor implements Pollable {
  /** Set before anything else happens, unless there is no room. */
  admitted: AdmittedConnection | undefined;
  readonly #kernel: Kernel;
  readonly address: string;
  readonly #descriptor: number;
  readonly #events: VisitorEvents;
  #state: "silent" | "spoken" | "over" = "silent";
  #deadline: Timer | undefined;
  #arrival: Arrival | undefined;

  constructor(
    kernel: Kernel,
    descriptor: number,
    address: string,
    events: VisitorEvents,
  ) {
    this.address = address;
    this.#kernel = kernel;
    this.#descriptor = descriptor;
    this.#events = events;
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  /** Waits for its ClientHello, and for its turn. */
  wait(deadline: Timer): void {
    this.#deadline = deadline;
    const interest = Ready.READ | Ready.PEER_END | Ready.EDGE;
    if (!this.#kernel.poller.add(this.#descriptor, interest, this)) {
      return this.close();
    }
    this.#look();
  }

  onReady(ready: number): void {
    if ((ready & ENDS) !== 0) this.close();
    else this.#look();
  }

  onFault(): void {
    this.close();
  }

  #look(): void {
    if (this.#state !== "silent") return;
    const { library } = this.#kernel;
    const count = library.recv(this.#descriptor, hello, HELLO_SIZE, MSG_PEEK);
    if (count < 0 && lastError(library) === Errno.EAGAIN) return;
    if (count <= 0) return this.close();
    if (!isWholeHello(hello.subarray(0, count))) return;
    this.#state = "spoken";
    this.#events.spoke();
  }

  /**
   * Gives the descriptor away.
   *
   * @throws {Error} The poller cannot wait for it; it is closed then.
   */
  arrive(timers: Timers, localAddress: string): Arrival {
    this.#state = "over";
    this.#deadline?.cancel();
    const { library, poller } = this.#kernel;
    const descriptor = this.#descriptor;
    poller.release(descriptor);
    tuneDescriptor(library, descriptor);
    const admitted = this.admitted!;
    const { address: remoteAddress } = this;
    const stream = new StreamDescriptor(library, poller, descriptor, {
      isTcp: true,
      mayRead: true,
      isPrompt: true,
      remoteAddress,
      localAddress,
    });
    admitted.linger = () => lingerInKernel(library, descriptor, timers);
    return this.#arrival = {
      stream,
      admitted,
      onEvicted: () => stream.close(),
    };
  }

  /**
   * Harmless a second time. An admitted connection is closed by its receiver.
   */
  close(): void {
    if (this.#state === "over") return this.#arrival?.onEvicted();
    const hasSpoken = this.#state === "spoken";
    this.#state = "over";
    this.#deadline?.cancel();
    void this.#kernel.poller.close(this.#descriptor);
    if (hasSpoken) this.#events.gone();
    this.admitted?.leave();
  }
}

const ENDS = Ready.PEER_END | Ready.HANGUP | Ready.ERROR;
const ECONNABORTED = 103;

// One for all, as each call is dealt with at once.
const name = new Uint8Array(SOCKET_ADDRESS_BYTES);
const names = new SocketAddressReader(name);
const nameLength = new Uint32Array(1);
const nameLengthBytes = new Uint8Array(nameLength.buffer);
const hello = new Uint8Array(HELLO_BYTES_MAX);
const HELLO_SIZE = BigInt(HELLO_BYTES_MAX);
