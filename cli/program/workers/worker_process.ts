/**
 * One worker, as its parent sees it: a process, a conversation, and copies of
 * its listening sockets.
 *
 * @module
 */

import type { AdminWho } from "../../../net/admin/admin_api.ts";
import { PASSED_WHO } from "../../../net/admin/http_request.ts";
import { type HttpUse, passedWho } from "../../../net/admin/passed_http.ts";
import { joinedBytes } from "../../../proto/bytes/joined_bytes.ts";
import type {
  ListeningSocket,
  SocketStore,
  WaitingSocket,
} from "../../../net/bind/socket_store.ts";
import { HttpConnection } from "../../../net/channel/http_connection.ts";
import { headBytes } from "../../../net/http1/head.ts";
import {
  inherited,
  packetPair,
  streamPair,
} from "../../../net/handover/socket_pair.ts";
import { DESCRIPTORS_MAX } from "../../../net/libc/descriptor_messages.ts";
import type { PathAcceptors, PathWorker } from "./path_acceptor.ts";
import { selfCommand } from "../self_command.ts";
import {
  closeAll,
  hear,
  type Order,
  type Report,
  WorkerChannel,
} from "./worker_channel.ts";
import { workerEnvironment, type WorkerRole } from "./worker_role.ts";

/** What its owner is told. */
export interface WorkerEvents {
  readonly chose: (port: WorkerRole["chosen"][number]) => void;
  /** It has ended by itself, or was killed. */
  readonly ended: (status: Deno.CommandStatus) => void;
}

/** How it is started. */
export interface WorkerStart {
  readonly role: Omit<WorkerRole, "descriptor">;
  /** The words behind the program's own. */
  readonly argv: readonly string[];
  /** Of its predecessors; those without a listener at its start are closed. */
  readonly sockets: readonly WaitingSocket[];
  readonly store: SocketStore;
  readonly acceptors: PathAcceptors;
}

/** As keys begin (`socket_key.ts`). */
export type SocketKind = "tcp" | "unix";

/** So many looks without an answer: it is frozen, or very busy. */
export const SILENT_LOOKS_MAX = 5;

/** What somebody asks the program, passed on. */
export interface WorkerQuestion {
  readonly use: HttpUse;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Who asks; absent: nobody is known to. */
  readonly who?: AdminWho | undefined;
  /** JSON. */
  readonly body?: string;
}

/** An answer, whole. */
export interface WorkerAnswer {
  readonly status: number;
  readonly contentType: string;
  /** Where somebody else is to be asked; empty: nowhere. */
  readonly location: string;
  readonly body: Uint8Array<ArrayBuffer>;
}

export class WorkerProcess implements PathWorker {
  readonly index: number;
  readonly pid: number;
  readonly #store: SocketStore;
  readonly #acceptors: PathAcceptors;
  readonly #channel: WorkerChannel<Order, Report>;
  readonly #child: Deno.ChildProcess;
  readonly #sockets = new Map<string, Copy[]>();
  readonly #paths: string[] = [];
  readonly #started = Promise.withResolvers<void>();
  readonly #gone = Promise.withResolvers<void>();
  /** Who waits until it is ready; it answers in their order or sooner. */
  readonly #waiting: (() => void)[] = [];
  readonly #asking: (() => void)[] = [];
  #state: "starting" | "up" | "gone" = "starting";
  #agents = 0;
  #unanswered = 0;
  /** What it was given, until it has opened what it needs. */
  #given: readonly WaitingSocket[];
  early: readonly string[] = [];
  late: readonly string[] = [];

  /** @throws A system error: there is no descriptor, or no process, left. */
  constructor(start: WorkerStart, private readonly events: WorkerEvents) {
    const { role, argv, sockets, store, acceptors } = start;
    this.index = role.index;
    this.#store = store;
    this.#acceptors = acceptors;
    const { near, far } = packetPair();
    this.#channel = new WorkerChannel(near);
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
    return this.#state === "up";
  }

  get isGone(): boolean {
    return this.#state === "gone";
  }

  /** It has not answered for a while. */
  get isSilent(): boolean {
    return this.#unanswered > SILENT_LOOKS_MAX;
  }

  /** Asks how it is. @returns Settles when it has answered, or has ended. */
  look(): Promise<void> {
    this.#unanswered++;
    // One that is frozen for days is not asked thousands of times.
    if (this.#asking.length > SILENT_LOOKS_MAX) return Promise.resolve();
    this.tell({ order: "tell" });
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

  tell(order: Order): void {
    this.#channel.send(order);
  }

  async whenReady(agents: number, isServed: boolean): Promise<void> {
    await this.started;
    const ready = new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.tell({ order: "get ready", agents, isServed });
    await Promise.race([ready, this.gone]);
  }

  /**
   * It serves from now on.
   *
   * @param isAll Without: all but what is better asked when agents are linked.
   */
  serve(isAll: boolean): void {
    for (const [key, copies] of this.#sockets) {
      if (!isAll && this.late.includes(key)) continue;
      for (const copy of copies) copy.start();
    }
    if (isAll) this.tell({ order: "start" });
  }

  pass(key: string, descriptors: readonly number[]): void {
    this.#channel.send({ order: "pass", key }, descriptors);
  }

  /** Accepts for another one. */
  adopt(sockets: readonly WaitingSocket[]): void {
    this.#channel.send(
      { order: "adopt" },
      sockets.slice(0, DESCRIPTORS_MAX).map(({ descriptor }) => descriptor),
    );
  }

  kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }

  /** Asks as a client of its port would. @throws Why there is no answer. */
  async ask(
    { use, method, path, who, body }: WorkerQuestion,
    signal: AbortSignal,
  ): Promise<WorkerAnswer> {
    const { near, far } = streamPair();
    this.#channel.send({ order: "http", use }, [far]);
    closeAll([far]);
    const connection = new HttpConnection(near, () => {});
    try {
      const lines = [`${method} ${path} HTTP/1.1`, "host: localhost"];
      if (who !== undefined) lines.push(`${PASSED_WHO}: ${passedWho(who)}`);
      const content = new TextEncoder().encode(body ?? "");
      if (body !== undefined) {
        lines.push(
          "content-type: application/json",
          `content-length: ${content.length}`,
        );
      }
      const bytes = joinedBytes([headBytes(lines), content]);
      const answer = await connection.ask({ method, bytes, signal });
      const { status, fields } = answer.head;
      return {
        status,
        contentType: fields.all("content-type")[0] ?? "text/plain",
        location: fields.all("location")[0] ?? "",
        body: new Uint8Array(await new Response(answer.body).arrayBuffer()),
      };
    } finally {
      connection.close();
    }
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

  /** Where it listens on unix sockets. */
  get paths(): readonly string[] {
    return this.#paths;
  }

  /** Copies of its sockets of a kind, which stay its. */
  socketsOf(kind: SocketKind): readonly WaitingSocket[] {
    return [...this.#sockets]
      .filter(([key]) => key.startsWith(`${kind} `))
      .flatMap(([, copies]) => copies);
  }

  #give(sockets: readonly WaitingSocket[]): void {
    for (const isHeld of [true, false]) {
      const some = sockets.filter((one) => one.isHeld === isHeld)
        .map(({ descriptor }) => descriptor);
      while (some.length > 0) {
        this.#channel.send(
          { order: "give", isHeld },
          some.splice(0, DESCRIPTORS_MAX),
        );
      }
    }
    this.tell({ order: "go" });
  }

  /** What it uses it has reported, with descriptors of their own. */
  #forgetGiven(): void {
    closeAll(this.#given.map(({ descriptor }) => descriptor));
    this.#given = [];
  }

  #heard(report: Report, descriptors: readonly number[]): void {
    switch (report.report) {
      case "opened":
        return this.#opened(report, descriptors[0]!);
      case "closed":
        this.#closed(report.key);
        return this.tell({ order: "noted" });
      case "chose":
        return this.events.chose(report.port);
      case "started":
        this.early = report.early;
        this.late = report.late;
        if (this.#state === "starting") this.#state = "up";
        this.#forgetGiven();
        return this.#started.resolve();
      case "ready":
        return this.#waiting.shift()?.();
      case "told":
        this.#unanswered = 0;
        for (const answered of this.#asking.splice(0)) answered();
        this.#agents = report.agents;
    }
  }

  #opened(
    { key, isHeld }: { readonly key: string; readonly isHeld: boolean },
    descriptor: number,
  ): void {
    const isPath = key.startsWith("unix ");
    const copy = new Copy(descriptor, isHeld, (order) => {
      if (!isPath) this.tell({ order, keys: [key] });
      else if (order === "start") this.#acceptors.add(key, descriptor, this);
      else this.#acceptors.remove(key, this);
    });
    const unlist = this.#store.opened(copy);
    copy.unlist = () => {
      unlist();
      if (isPath) this.#acceptors.remove(key, this);
    };
    if (isPath) this.#paths.push(key.slice("unix ".length));
    this.#sockets.set(key, [...this.#sockets.get(key) ?? [], copy]);
  }

  #closed(key: string): void {
    const [first, ...others] = this.#sockets.get(key) ?? [];
    if (first === undefined) return;
    first.close();
    if (others.length > 0) this.#sockets.set(key, others);
    else this.#sockets.delete(key);
  }

  #ended(status: Deno.CommandStatus): void {
    this.#state = "gone";
    this.#channel.close();
    this.#gone.resolve();
    this.events.ended(status);
  }
}

/** A socket of a worker; what is done with it, the worker does. */
class Copy implements ListeningSocket {
  unlist = () => {};
  #isClosed = false;

  #isHeld: boolean;

  constructor(
    readonly descriptor: number,
    isHeld: boolean,
    private readonly order: (order: "start" | "hold") => void,
  ) {
    this.#isHeld = isHeld;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  start(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.order("start");
  }

  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.order("hold");
  }

  /** The worker lets go of its own when it is told whose they are now. */
  handedOver(): void {
    this.close();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.unlist();
    closeAll([this.descriptor]);
  }

  /** Its descriptor is the caller's; nobody accepts with it. */
  take(): WaitingSocket {
    this.#isClosed = true;
    this.unlist();
    return { descriptor: this.descriptor, isHeld: true };
  }
}

function spawn(argv: readonly string[], role: WorkerRole): Deno.ChildProcess {
  const [program, ...words] = selfCommand();
  return new Deno.Command(program, {
    args: [...words, ...argv],
    env: workerEnvironment(role),
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
}
