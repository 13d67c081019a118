/**
 * One worker, as its parent sees it: a process, a conversation, and copies of
 * its listening sockets.
 *
 * @module
 */

import { quietly } from "../../../platform/errors/error_code.ts";
import type {
  ListeningSocket,
  SocketStore,
  WaitingSocket,
} from "../../../net/bind/socket_store.ts";
import { inherited, packetPair } from "../../../net/handover/socket_pair.ts";
import { hear, PacketChannel } from "../../../net/handover/packet_channel.ts";
import { closeAll } from "../../../net/libc/descriptors.ts";
import { DESCRIPTORS_MAX } from "../../../net/libc/descriptor_messages.ts";
import type {
  PathAcceptors,
  PathWorker,
} from "../../../net/bind/path_acceptor.ts";
import { atMost } from "../../../platform/time/deadline.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { HandoverFields } from "../../../net/handover/packet_socket.ts";
import { OWN_FILE, selfCommand } from "../rights.ts";
import { askOver } from "./channel_http.ts";
import {
  type Order,
  type Report,
  type SpecialPorts,
  workerEnvironment,
  type WorkerRole,
} from "./worker_words.ts";

/** The events for its owner. */
export interface WorkerEvents {
  readonly chose: (port: WorkerRole["chosen"][number]) => void;
  /** It wants to know how all of them are, over this socket. */
  readonly asked: (descriptor: number) => void;
  /** It has ended by itself, or was killed. */
  readonly ended: (status: Deno.CommandStatus) => void;
}

/** How it is started. */
export interface WorkerStart {
  readonly role: Omit<WorkerRole, "descriptor">;
  /** The words behind the program's own. */
  readonly argv: readonly string[];
  /**
   * Sockets of its predecessors; those without a listener at its start are
   * closed.
   */
  readonly sockets: readonly WaitingSocket[];
  readonly store: SocketStore;
  readonly acceptors: PathAcceptors;
}

/** The first part of keys (`socket_key.ts`). */
export type SocketKind = "tcp" | "unix";

/** A successor asks for its memory, and its patience is limited. */
const MEMORY_MS = 1_000;

/** So many looks without an answer: it is frozen, or very busy. */
export const SILENT_LOOKS_MAX = 5;

/** How far it is. What it does with its sockets depends on it. */
type Life =
  | { readonly kind: "starting" }
  | {
    readonly kind: "up";
    readonly ports: SpecialPorts;
    /** Which of its sockets accept. */
    readonly serves: "none" | "all-but-late" | "all";
  }
  | { readonly kind: "gone" };

export class WorkerProcess implements PathWorker {
  readonly index: number;
  readonly pid: number;
  readonly #store: SocketStore;
  readonly #acceptors: PathAcceptors;
  readonly #channel: PacketChannel<Order, Report>;
  readonly #child: Deno.ChildProcess;
  readonly #sockets = new Map<string, Copy[]>();
  readonly #paths: string[] = [];
  readonly #started = Promise.withResolvers<void>();
  readonly #gone = Promise.withResolvers<void>();
  /** Those that wait until it is ready; it answers in their order or sooner. */
  readonly #waiting: (() => void)[] = [];
  readonly #asking: (() => void)[] = [];
  #life: Life = { kind: "starting" };
  #agents = 0;
  /** Its answer, since it was asked. */
  #memory:
    | { readonly parts: HandoverFields[]; readonly told: () => void }
    | undefined;
  #unanswered = 0;
  /** The sockets that it was given, until it has opened those that it needs. */
  #given: readonly WaitingSocket[];

  /** @throws A system error: there is no descriptor, or no process, left. */
  constructor(start: WorkerStart, private readonly events: WorkerEvents) {
    const { role, argv, sockets, store, acceptors } = start;
    this.index = role.index;
    this.#store = store;
    this.#acceptors = acceptors;
    const { near, far } = packetPair();
    this.#channel = new PacketChannel(near);
    try {
      this.#child = inherited(
        far,
        () => spawn(argv, { ...role, descriptor: far }),
      );
    } catch (error) {
      this.#channel.close();
      throw error;
    } finally {
      closeAll([far]);
    }
    this.pid = this.#child.pid;
    this.#given = sockets;
    this.#give(sockets);
    hear(this.#channel, (report, fds) => this.#heard(report, fds), () => {});
    this.#child.status.then((status) => this.#ended(status));
  }

  /** Settles when its ports are open, or it has ended. */
  get started(): Promise<void> {
    return Promise.race([this.#started.promise, this.gone]);
  }

  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  get isUp(): boolean {
    return this.#life.kind === "up";
  }

  get isGone(): boolean {
    return this.#life.kind === "gone";
  }

  /** Known once it is up. */
  get ports(): SpecialPorts {
    return this.#life.kind === "up" ? this.#life.ports : NO_PORTS;
  }

  /** It has not answered for a while. */
  get isSilent(): boolean {
    return this.#unanswered > SILENT_LOOKS_MAX;
  }

  /**
   * Asks for its state. @returns Settles when it has answered, or has ended.
   */
  look(): Promise<void> {
    this.#unanswered++;
    // One that is frozen for days is not asked thousands of times.
    if (this.#asking.length > SILENT_LOOKS_MAX) return Promise.resolve();
    this.tell({ kind: "report" });
    const told = new Promise<void>((resolve) => this.#asking.push(resolve));
    return Promise.race([told, this.gone]);
  }

  /** How many agents, or servers, were linked when it said so last. */
  get agents(): number {
    return this.#agents;
  }

  /** The same; one that has been asked and has not answered may have some. */
  get likelyAgents(): number {
    return this.#unanswered > 0 ? Math.max(1, this.#agents) : this.#agents;
  }

  /** The memory with which its successor continues, if it comes soon enough. */
  async memory(): Promise<readonly HandoverFields[]> {
    const told = Promise.withResolvers<void>();
    const memory = this.#memory = { parts: [], told: told.resolve };
    this.tell({ kind: "report-memory" });
    const settled = Promise.race([told.promise, this.gone]);
    await atMost(systemTimers, MEMORY_MS, settled);
    return memory.parts;
  }

  tell(order: Order): void {
    this.#channel.send(order);
  }

  async whenReady(agents: number, isServed: boolean): Promise<void> {
    await this.started;
    const ready = new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.tell({ kind: "report-ready", agents, isServed });
    await Promise.race([ready, this.gone]);
  }

  /**
   * It serves from now on.
   *
   * @param isAll False: without ports that should wait until agents are linked.
   */
  serve(isAll: boolean): void {
    if (this.#life.kind !== "up") return;
    this.#life = { ...this.#life, serves: isAll ? "all" : "all-but-late" };
    for (const [key, copies] of this.#sockets) {
      if (!this.#mayServe(key)) continue;
      for (const copy of copies) copy.start();
    }
    if (isAll) this.tell({ kind: "start" });
  }

  #mayServe(key: string): boolean {
    const life = this.#life;
    if (life.kind !== "up" || life.serves === "none") return false;
    return life.serves === "all" || !life.ports.late.includes(key);
  }

  pass(key: string, descriptors: readonly number[]): void {
    this.#channel.send({ kind: "serve", key }, descriptors);
  }

  /** Accepts for another worker. */
  adopt(sockets: readonly WaitingSocket[]): void {
    this.#channel.send(
      { kind: "adopt" },
      sockets.slice(0, DESCRIPTORS_MAX).map(({ descriptor }) => descriptor),
    );
  }

  kill(): void {
    // It may have ended by itself.
    quietly(() => this.#child.kill("SIGKILL"));
  }

  /** Asks for its state. @returns `undefined`: it does not answer. */
  ask(path: string): Promise<Response | undefined> {
    return askOver(
      (descriptor) => this.#channel.send({ kind: "answer" }, [descriptor]),
      path,
    );
  }

  /** All that it had, which is the caller's from now on. */
  takeSockets(): readonly WaitingSocket[] {
    const sockets: WaitingSocket[] = [...this.#given];
    this.#given = [];
    for (const copies of this.#sockets.values()) {
      for (const copy of copies) sockets.push(copy.take());
    }
    this.#sockets.clear();
    return sockets;
  }

  /** The unix sockets that it listens on. */
  get paths(): readonly string[] {
    return this.#paths;
  }

  /** Copies of its sockets of a kind, without some, which stay its. */
  socketsOf(
    kind: SocketKind,
    without: ReadonlyMap<string, unknown> = new Map(),
  ): readonly WaitingSocket[] {
    return [...this.#sockets]
      .filter(([key]) => key.startsWith(`${kind} `) && !without.has(key))
      .flatMap(([, copies]) => copies);
  }

  #give(sockets: readonly WaitingSocket[]): void {
    for (const isHeld of [true, false]) {
      const some = sockets.filter((one) => one.isHeld === isHeld)
        .map(({ descriptor }) => descriptor);
      while (some.length > 0) {
        this.#channel.send(
          { kind: "take", isHeld },
          some.splice(0, DESCRIPTORS_MAX),
        );
      }
    }
    this.tell({ kind: "open" });
  }

  /**
   * It has reported the sockets that it uses, with descriptors of their own.
   */
  #forgetGiven(): void {
    closeAll(this.#given.map(({ descriptor }) => descriptor));
    this.#given = [];
  }

  #heard(report: Report, descriptors: readonly number[]): void {
    switch (report.kind) {
      case "opened":
        return this.#opened(report, descriptors[0]!);
      case "closed":
        this.#closed(report.key);
        return this.tell({ kind: "noted" });
      case "chose":
        return this.events.chose(report.port);
      case "started":
        if (this.#life.kind === "starting") {
          this.#life = { kind: "up", ports: report.ports, serves: "none" };
        }
        this.#forgetGiven();
        return this.#started.resolve();
      case "ready":
        return this.#waiting.shift()?.();
      case "linked":
        this.#unanswered = 0;
        for (const answered of this.#asking.splice(0)) answered();
        this.#agents = report.agents;
        return;
      case "memory":
        if (report.part === undefined) this.#memory?.told();
        else this.#memory?.parts.push(report.part);
        return;
      case "ask":
        return this.events.asked(descriptors[0]!);
    }
  }

  #opened(
    { key, isHeld }: { readonly key: string; readonly isHeld: boolean },
    descriptor: number,
  ): void {
    const isPath = key.startsWith("unix ");
    const copy = new Copy(descriptor, isHeld, (kind) => {
      if (!isPath) this.tell({ kind, keys: [key] });
      else if (kind === "start") this.#acceptors.add(key, descriptor, this);
      else this.#acceptors.remove(key, this);
    });
    const unlist = this.#store.opened(copy);
    copy.unlist = () => {
      unlist();
      if (isPath) this.#acceptors.remove(key, this);
    };
    if (isPath) this.#paths.push(key.slice("unix ".length));
    this.#sockets.set(key, [...this.#sockets.get(key) ?? [], copy]);
    // Sockets that it opens later need not wait.
    if (this.#mayServe(key)) copy.start();
  }

  #closed(key: string): void {
    const [first, ...others] = this.#sockets.get(key) ?? [];
    if (first === undefined) return;
    first.close();
    if (others.length > 0) this.#sockets.set(key, others);
    else this.#sockets.delete(key);
  }

  #ended(status: Deno.CommandStatus): void {
    this.#life = { kind: "gone" };
    this.#channel.close();
    this.#gone.resolve();
    this.events.ended(status);
  }
}

/** A worker's socket; the worker executes each action on it. */
class Copy implements ListeningSocket {
  unlist = () => {};
  #state: "held" | "open" | "closed";

  constructor(
    readonly descriptor: number,
    isHeld: boolean,
    private readonly order: (kind: "start" | "hold") => void,
  ) {
    this.#state = isHeld ? "held" : "open";
  }

  get isHeld(): boolean {
    return this.#state === "held";
  }

  start(): void {
    if (this.#state !== "held") return;
    this.#state = "open";
    this.order("start");
  }

  hold(): void {
    if (this.#state !== "open") return;
    this.#state = "held";
    this.order("hold");
  }

  /** The worker closes its own copy when it learns of the new owner. */
  handedOver(): void {
    this.close();
  }

  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.unlist();
    closeAll([this.descriptor]);
  }

  /** The caller owns the descriptor; no process accepts with it. */
  take(): WaitingSocket {
    this.#state = "closed";
    this.unlist();
    return { descriptor: this.descriptor, isHeld: true };
  }
}

const NO_PORTS: SpecialPorts = { early: [], late: [] };

function spawn(argv: readonly string[], role: WorkerRole): Deno.ChildProcess {
  const [program, ...words] = selfCommand();
  return new Deno.Command(program, {
    args: [...words, ...argv],
    // It comes from no launcher, which would ignore SIGHUP for it.
    env: { ...workerEnvironment(role), [OWN_FILE]: "" },
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
}
