/**
 * Accepts connections for a TLS server, and does no work for them before they
 * have sent a ClientHello.
 *
 * A silent connection costs its descriptor and an entry in a table; to refuse
 * one costs two system calls. So the many connections of a crowd or a flood
 * cost little each, and the handshake, which costs much, begins only for a
 * ClientHello that is complete (no slowloris of bytes gets that far), in turns
 * (`HandshakeQueue`), and for sources that broke rules one at a time
 * (`Penalty`).
 *
 * It needs the C library; without it the platform accepts, and only a limit on
 * handshakes is possible (`net/tls/node`).
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import { ACCEPT_PAUSE_MS, AcceptProblems } from "../bind/accept_loop.ts";
import { type DescriptorUse, mayTakeDescriptor } from "../libc/descriptors.ts";
import {
  guarded,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { lingerInKernel } from "../libc/socket_option.ts";
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
import { acceptedFrom, acceptSocket } from "../libc/sockets.ts";
import { Errno, systemError } from "../libc/system_error.ts";
import { tuneDescriptor } from "../libc/tcp_options.ts";
import { HANDSHAKE_TIMEOUT_MS } from "../tls/tls_acceptor.ts";
import { HELLO_BYTES_MAX, isWholeHello } from "./client_hello.ts";
import type {
  AdmittedConnection,
  ConnectionLimiter,
} from "./connection_limiter.ts";
import type { HandshakeQueue } from "./handshake_queue.ts";
import { PenaltyQueue } from "./penalty.ts";

/**
 * How long connections are accepted before others have a turn: a handful of
 * them. What the kernel holds meanwhile is bounded by the backlog.
 */
export const ACCEPT_TURN_MS = 0.2;

const MSG_PEEK = 2;

/** What a `AcceptQueue` needs from outside. */
export interface AcceptQueueOptions {
  readonly limiter: ConnectionLimiter;
  readonly queue: HandshakeQueue;
  /** Other uses of descriptors go first. */
  readonly use: DescriptorUse;
  /**
   * Begins a handshake; the connection's admission ends with the connection.
   */
  readonly admit: (admittedStream: AdmittedStream) => void;
  /** One line per burst of failures; accepting goes on. */
  readonly onProblem: (line: string) => void;
}

/** A connection whose handshake may begin. */
export interface AdmittedStream {
  /** The receiver's to close. */
  readonly stream: Stream;
  readonly admitted: AdmittedConnection;
  /** Set by the receiver: its place is wanted for another, so close it. */
  onEvicted: () => void;
}

interface System {
  readonly library: LibC;
  readonly poller: Poller;
}

export class AcceptQueue implements Pollable {
  readonly #penalized: PenaltyQueue<PendingConnection>;
  #isClosed = false;
  readonly #problems: AcceptProblems;
  readonly #system: System = {
    library: openLibc()!,
    poller: sharedPoller()!,
  };

  /** @param listener It is the C library's. */
  constructor(
    private readonly listener: PolledListener,
    private readonly options: AcceptQueueOptions,
  ) {
    const { hostname, port } = listener.address;
    const address = hostPort(hostname, port);
    this.#problems = new AcceptProblems(address, options.onProblem);
    this.#penalized = new PenaltyQueue({
      timers: systemTimers,
      random: Math.random,
      admit: (pending) => this.#enqueue(pending),
    });
    listener.watchedBy(this);
  }

  /** Stops accepting; accepted connections go on. */
  close(): void {
    this.#isClosed = true;
    this.listener.close();
  }

  onReady(): void {
    const { queue } = this.options;
    const untilMs = systemTimers.now() + ACCEPT_TURN_MS;
    while (this.#isAccepting) {
      // A crowd waits in the kernel: a newcomer never takes an earlier peer's
      // turn.
      if (queue.isFull) return queue.whenRoom(this.#resume);
      if (!this.#acceptOne()) return;
      if (systemTimers.now() < untilMs) continue;
      return this.#system.poller.goOn(this);
    }
  }

  readonly #resume = () => {
    guarded("accept", () => this.onReady(), () => this.onFault());
  };

  /** That connection is lost; later ones are not. */
  onFault(): void {
    if (!this.#isClosed) this.#system.poller.goOn(this);
  }

  /** Another process may have the listener by now. */
  get #isAccepting(): boolean {
    return !this.#isClosed && this.listener.isOpen;
  }

  /** @returns Whether there may be another connection. */
  #acceptOne(): boolean {
    return this.listener.descriptors
      .some((descriptor) => this.#isAccepting && this.#acceptOf(descriptor));
  }

  #acceptOf(descriptor: number): boolean {
    const { library } = this.#system;
    const accepted = acceptSocket(library, descriptor);
    if (accepted >= 0) {
      if (!mayTakeDescriptor(this.options.use)) {
        // The rest is for health and administration.
        library.close(accepted);
        this.#problems.refused();
        return true;
      }
      this.#problems.over();
      this.#onAccepted(accepted);
      return true;
    }
    const number = lastError(library);
    if (number === Errno.EAGAIN) return false;
    if (number === Errno.EINTR || number === ECONNABORTED) return true;
    // There is no descriptor left, or no memory.
    this.#problems.failed(systemError(number));
    systemTimers.after(ACCEPT_PAUSE_MS, () => this.onReady());
    return false;
  }

  #onAccepted(descriptor: number): void {
    const address = acceptedFrom() ?? "";
    const pending: PendingConnection = new PendingConnection(
      this.#system,
      descriptor,
      address,
      {
        onHello: () => this.#onHello(pending),
        onGone: () =>
          this.#penalized.leave(pending.admitted!.penalty!, pending),
      },
    );
    try {
      const admitted = this.options.limiter.arrive(
        address,
        () => pending.close(),
      );
      if (admitted === undefined) return pending.close();
      pending.admitted = admitted;
      if (this.#isTooMany(admitted)) return this.#refuse(pending);
      pending.wait();
    } catch (error) {
      reportInternalError("accept", error);
      pending.close();
    }
  }

  #isTooMany(admitted: AdmittedConnection): boolean {
    const penalty = admitted.penalty!;
    return penalty.isOn(systemTimers.now()) &&
      this.#penalized.isFull(penalty);
  }

  #refuse(pending: PendingConnection): void {
    pending.admitted!.refusePenalized();
    pending.close();
  }

  #onHello(pending: PendingConnection): void {
    const penalty = pending.admitted!.penalty!;
    // A new connection does not overtake those that wait.
    if (!penalty.isOn(systemTimers.now())) {
      return this.#enqueue(pending);
    }
    if (!this.#penalized.wait(penalty, pending)) this.#refuse(pending);
  }

  /** @returns `undefined`: the kernel has no memory for it. */
  #admit(pending: PendingConnection): AdmittedStream | undefined {
    try {
      return pending.admit();
    } catch (error) {
      pending.admitted!.leave();
      this.options.onProblem(
        `Cannot serve a connection: ${messageOf(error)}`,
      );
      return undefined;
    }
  }

  /** Its turn comes behind the connections that wait already. */
  #enqueue(pending: PendingConnection): void {
    const begin = () => {
      const { admitted } = pending;
      if (!admitted!.takeHandshake()) return pending.close();
      const { admit } = this.options;
      const admittedStream = this.#admit(pending);
      if (admittedStream === undefined) return;
      guarded("accept", () => admit(admittedStream), () => pending.close());
    };
    this.options.queue.add({ isGone: () => pending.isOver, begin });
  }
}

/** Events of a pending connection. */
interface PendingEvents {
  onHello(): void;
  onGone(): void;
}

/**
 * A connection whose ClientHello is not complete, or whose turn has not come.
 */
class PendingConnection implements Pollable {
  /** Set before anything else happens, unless there is no room. */
  admitted: AdmittedConnection | undefined;
  #state: "silent" | "ready" | "over" = "silent";
  #deadline: Timer | undefined;
  #stream: AdmittedStream | undefined;

  constructor(
    private readonly system: System,
    private readonly descriptor: number,
    readonly address: string,
    private events: PendingEvents | undefined,
  ) {}

  get isOver(): boolean {
    return this.#state === "over";
  }

  /** Waits for its ClientHello, and for its turn. */
  wait(): void {
    this.#deadline = systemTimers.after(
      HANDSHAKE_TIMEOUT_MS,
      () => this.close(),
    );
    const interest = Ready.READ | Ready.PEER_END | Ready.EDGE;
    if (!this.system.poller.add(this.descriptor, interest, this)) {
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
    const { library } = this.system;
    const count = library.recv(this.descriptor, hello, HELLO_SIZE, MSG_PEEK);
    if (count < 0 && lastError(library) === Errno.EAGAIN) return;
    if (count <= 0) return this.close();
    if (!isWholeHello(hello.subarray(0, count))) return;
    this.#state = "ready";
    this.events?.onHello();
  }

  /**
   * Gives the descriptor away.
   *
   * @throws {Error} The poller cannot wait for it; it is closed then.
   */
  admit(): AdmittedStream {
    this.#state = "over";
    this.#deadline?.cancel();
    this.#deadline = this.events = undefined;
    const { library, poller } = this.system;
    const descriptor = this.descriptor;
    poller.release(descriptor);
    tuneDescriptor(library, descriptor);
    const admitted = this.admitted!;
    const { address: remoteAddress } = this;
    const stream = new StreamDescriptor(library, poller, descriptor, {
      isTcp: true,
      mayRead: true,
      isPrompt: true,
      remoteAddress,
    });
    admitted.linger = () => lingerInKernel(library, descriptor, systemTimers);
    return this.#stream = {
      stream,
      admitted,
      onEvicted: () => stream.close(),
    };
  }

  /**
   * Harmless a second time. An admitted connection is closed by its receiver.
   */
  close(): void {
    if (this.#state === "over") return this.#stream?.onEvicted();
    const wasReady = this.#state === "ready";
    this.#state = "over";
    this.#deadline?.cancel();
    void this.system.poller.close(this.descriptor);
    if (wasReady) this.events?.onGone();
    this.admitted?.leave();
  }
}

const ENDS = Ready.PEER_END | Ready.HANGUP | Ready.ERROR;
const ECONNABORTED = 103;

// One for all, as each call is dealt with at once.
const hello = new Uint8Array(HELLO_BYTES_MAX);
const HELLO_SIZE = BigInt(HELLO_BYTES_MAX);
