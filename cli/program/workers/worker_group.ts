/**
 * The parent of several workers: starts them, replaces one that dies, and acts
 * as one program for signals, for a process that takes over, and for health
 * checks. No connection of the tunnel goes through it.
 *
 * @module
 */

import { workerSocket } from "../../../net/admin/own_group.ts";
import { keyOfPath } from "../../../net/bind/socket_key.ts";
import {
  type SocketStore,
  socketStore,
  type WaitingSocket,
} from "../../../net/bind/socket_store.ts";
import type { HandoverFields } from "../../../net/handover/packet_socket.ts";
import { closeAll, copyDescriptor } from "../../../net/libc/descriptors.ts";
import type {
  BoundListener,
  ListenAddress,
} from "../../../net/listen/listeners.ts";
import { messageOf, quietly } from "../../../platform/errors/error_code.ts";
import { unawaited } from "../../../platform/errors/internal_errors.ts";
import { atMost } from "../../../platform/time/deadline.ts";
import { YOUNG_MS } from "../../../platform/time/supervise.ts";
import { Backoff } from "../../../proto/sync/backoff.ts";
import { CommandFailure, EXIT_CODES, ExitCode } from "../exit_codes.ts";
import type { Program, Replaceable } from "../../../net/program/program.ts";
import { PathAcceptors } from "../../../net/bind/path_acceptor.ts";
import { ChannelHttp } from "./channel_http.ts";
import { GroupAnswers } from "./group_answers.ts";
import type { ChosenPort, Order } from "./worker_words.ts";
import { WorkerProcess } from "./worker_process.ts";
import { UsageError } from "../../flags/usage_error.ts";

/**
 * A worker that dies sooner after its start than {@linkcode YOUNG_MS}, this
 * often in a row, ends all.
 */
export const YOUNG_DEATHS_MAX = 5;

/** The longest pause before one that died is replaced. */
const REPLACE_CAP_MS = 5_000;

/** How often workers are asked how they are. */
const LOOK_MS = 1_000;

/** How long a worker may take to report before the others count alone. */
const ANSWER_MS = 5_000;

/** A successor asks for their state, and its patience is limited. */
const TELL_MS = 1_000;

/** Others serve meanwhile, so it has six times as long as a program that starts. */
const READY_TRIES = 6;

/** Beyond the time that it was given to end, a worker is stuck. */
const STUCK_MS = 10_000;

/** The uses of workers. */
export interface WorkersStart {
  readonly count: number;
  /** The words behind the program's own. */
  readonly argv: readonly string[];
  /** How long a worker may take to end. */
  readonly endMs: number;
  /** Where they are asked how they are; absent: on the admin port alone. */
  readonly health?: ListenAddress;
  /**
   * The admin address of the first worker; the others are beside it. Absent:
   * none.
   */
  readonly adminSocket: string | undefined;
}

/** The place of one worker, whichever process has it. */
interface Place {
  worker: WorkerProcess;
  startedMs: number;
  youngDeaths: number;
  readonly backoff: Backoff;
  /** It did not answer when it was looked at last. */
  isSilent: boolean;
  /** Another one accepts for it. */
  helper?: WorkerProcess | undefined;
}

export class WorkerGroup implements Replaceable {
  readonly #id = crypto.randomUUID();
  readonly #chosen: ChosenPort[] = [];
  readonly #acceptors = new PathAcceptors();
  readonly #http: ChannelHttp;
  /** Whose a socket is that not all of them have, by key. */
  readonly #owners: ReadonlyMap<string, number>;
  readonly #places: Place[] = [];
  readonly #finished = Promise.withResolvers<void>();
  /** `taking over`: another program serves until its sockets are taken. */
  #state: "taking over" | "serving" | "ending" | "over";
  #isHandedOver = false;
  #failure: CommandFailure | undefined;
  #restarts = 0;

  /** A report about all of them, and its place. */
  readonly #answers: GroupAnswers;
  readonly #health: BoundListener | undefined;

  /** @throws {ListenError} */
  private constructor(
    private readonly options: WorkersStart,
    private readonly store: SocketStore,
    private readonly program: Program,
  ) {
    const { adminSocket, count, health } = options;
    this.#state = store.waiting.length > 0 ? "taking over" : "serving";
    const answers = this.#answers = new GroupAnswers(program.metrics);
    const answer = (request: Request) => answers.to(request);
    this.#http = new ChannelHttp(answer);
    this.#health = health && program.openHealth(health, answer);
    this.#owners = new Map(
      adminSocket === undefined ? [] : Array.from(
        { length: count },
        (_, at) => [keyOfPath(workerSocket(adminSocket, at)), at] as const,
      ),
    );
  }

  /**
   * Starts all of them, the first one before the others, so that errors in
   * flags, files or addresses are reported once.
   *
   * @throws {CommandFailure} It could not start.
   */
  static async start(
    options: WorkersStart,
    store: SocketStore,
    program: Program,
  ): Promise<WorkerGroup> {
    const group = new WorkerGroup(options, store, program);
    group.finished.catch(() => {});
    const given = group.#given();
    const first = group.#start(0, given[0]!, true);
    // It ignores SIGHUP as this process did until now; those that follow may be
    // ended by it, and are replaced.
    Deno.addSignalListener("SIGHUP", () => {});
    await first.worker.started;
    if (!first.worker.isUp) {
      close(given.slice(1).flat());
      return await group.finished.then(() => group);
    }
    const others = given.slice(1).map((sockets, at) =>
      group.#start(at + 1, [...sockets, ...group.#paths()], false)
    );
    await Promise.all(others.map(({ worker }) => worker.started));
    for (const place of group.#places) group.#takeUp(place);
    unawaited("task", group.#watch());
    group.#answers.open(group);
    const health = group.#health?.address;
    program.log.info("workers started", {
      workers: options.count,
      processes: group.#places.map(({ worker }) => worker.pid).join(" "),
      health,
    });
    return group;
  }

  /** Those that are there, in the order of their numbers. */
  get workers(): readonly WorkerProcess[] {
    return this.#places.map(({ worker }) => worker).filter(({ isUp }) => isUp);
  }

  get count(): number {
    return this.options.count;
  }

  /** How many have died and were replaced. */
  get restarts(): number {
    return this.#restarts;
  }

  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  get isDraining(): boolean {
    return this.#state === "ending" || this.#state === "over";
  }

  get agents(): number {
    return Math.max(0, ...this.workers.map((one) => one.likelyAgents));
  }

  /** A successor that knows of no agents would serve without any. */
  async askForAgents(): Promise<void> {
    await this.#lookAt(this.workers, TELL_MS);
  }

  get early(): readonly string[] {
    return this.#places[0]!.worker.ports.early;
  }

  get late(): readonly string[] {
    return this.#places[0]!.worker.ports.late;
  }

  async whenReady(agents: number, isServed = false): Promise<void> {
    const ready = this.workers.map((one) => one.whenReady(agents, isServed));
    await Promise.race([Promise.all(ready), this.finished]);
  }

  tookOver(): void {
    if (this.#state !== "taking over") return;
    this.#state = "serving";
    for (const { worker } of this.#places) worker.serve(true);
  }

  /** For each worker; its number names the worker that continues with it. */
  get memory(): AsyncIterable<HandoverFields> {
    return this.#memories();
  }

  async *#memories(): AsyncGenerator<HandoverFields> {
    const { workers } = this;
    const memories = await Promise.all(workers.map((one) => one.memory()));
    for (const [at, parts] of memories.entries()) {
      for (const part of parts) yield { ...part, worker: workers[at]!.index };
    }
  }

  /** From a worker, or from a program that had none: all continue with it. */
  recall({ worker, ...part }: HandoverFields): void {
    const isMeant = ({ index }: WorkerProcess) =>
      worker === undefined || index === Number(worker) % this.count;
    for (const one of this.workers.filter(isMeant)) {
      one.tell({ kind: "recall", part });
    }
  }

  awaitSuccessor(ms: number): void {
    this.#tell({ kind: "await-successor", ms });
  }

  handedOverEarly(pid: number): void {
    this.#tell({ kind: "yield-early", pid });
  }

  handedOver(pid: number): void {
    this.#isHandedOver = true;
    this.program.log.info(`handed over to process ${pid}`);
    this.#end();
    this.#tell({ kind: "yield", pid });
  }

  successorEnded(): void {
    this.#tell({ kind: "successor-ended" });
  }

  shutdown(why: string): void {
    this.program.log.info(`${why}: all workers drain`);
    this.#end();
    this.#tell({ kind: "shutdown", why, areKept: this.store.areKept });
  }

  stop(reason: string): void {
    this.#end();
    for (const { worker } of this.#places) {
      worker.tell({ kind: "stop", reason });
    }
    this.program.timers.after(STOP_MS, () => this.#killAll());
  }

  reload(): void {
    this.#tell({ kind: "reload" });
  }

  #tell(order: Order): void {
    for (const worker of this.workers) worker.tell(order);
  }

  // --- Starting and replacing ------------------------------------------------

  /**
   * The sockets that a predecessor or a service manager has left, for each
   * worker.
   */
  #given(): WaitingSocket[][] {
    const { store, options: { count } } = this;
    const given = Array.from({ length: count }, (): WaitingSocket[] => []);
    for (const key of store.waiting) {
      const owner = this.#owners.get(key);
      for (const [at, socket] of store.take(key).entries()) {
        given[owner ?? at % count]!.push(socket);
        // A path has one socket, which all of them accept with.
        if (!key.startsWith("unix ") || owner !== undefined) continue;
        for (const other of given.slice(1)) other.push(copyOf(socket));
      }
    }
    return given;
  }

  /** The unix sockets that the first worker has opened, for the others. */
  #paths(): readonly WaitingSocket[] {
    const [first] = this.workers;
    return (first?.socketsOf("unix", this.#owners) ?? [])
      .map((socket) => ({ ...copyOf(socket), isHeld: true }));
  }

  #start(
    index: number,
    sockets: readonly WaitingSocket[],
    isFirst: boolean,
  ): Place {
    const { store, program: { timers }, options: { argv, count } } = this;
    const health = this.#health;
    const worker: WorkerProcess = new WorkerProcess({
      role: {
        index,
        count,
        id: this.#id,
        isFirst,
        health: health && { address: health.address, port: health.port },
        chosen: this.#chosen,
      },
      argv,
      sockets,
      store,
      acceptors: this.#acceptors,
    }, {
      chose: (port) => this.#chosen.push(port),
      asked: (descriptor) => this.#http.serve(descriptor),
      ended: (status) => this.#ended(worker, status),
    });
    const { backoff, youngDeaths = 0 } = this.#places[index] ?? {};
    return this.#places[index] = {
      worker,
      startedMs: timers.now(),
      youngDeaths,
      backoff: backoff ??
        new Backoff({ capMs: REPLACE_CAP_MS, random: Math.random }),
      isSilent: false,
    };
  }

  /** It serves as soon as it has as many agents as the others. */
  #takeUp(place: Place): void {
    const { worker } = place;
    if (this.#state !== "serving") return;
    worker.serve(false);
    unawaited("task", this.#serveWhenReady(place));
  }

  async #serveWhenReady(place: Place): Promise<void> {
    const { worker } = place;
    for (let tries = 0; tries < READY_TRIES; tries++) {
      const others = this.workers.filter((one) => one !== worker);
      await this.#lookAt(others);
      const agents = Math.max(0, ...others.map((one) => one.agents));
      await worker.whenReady(agents, false);
      await this.#lookAt([worker]);
      if (worker.agents >= agents || worker.isGone) break;
    }
    if (this.#state !== "taking over") worker.serve(true);
    this.#release(place);
  }

  /** How they are, as far as they say it soon. */
  async #lookAt(
    workers: readonly WorkerProcess[],
    atMostMs: number = ANSWER_MS,
  ): Promise<void> {
    const looks = Promise.all(workers.map((worker) => worker.look()));
    await atMost(this.program.timers, atMostMs, looks);
  }

  #ended(worker: WorkerProcess, status: Deno.CommandStatus): void {
    const place = this.#places[worker.index];
    if (place?.worker !== worker) return;
    for (const other of this.#places) {
      if (other.helper === worker) other.helper = undefined;
    }
    if (this.isDraining) {
      close(worker.takeSockets());
      return this.#endIfAll();
    }
    const isYoung = this.program.timers.now() - place.startedMs < YOUNG_MS;
    place.youngDeaths = isYoung ? place.youngDeaths + 1 : 0;
    const isHopeless = place.youngDeaths >= YOUNG_DEATHS_MAX;
    if (this.#places.length < this.count || isHopeless) {
      close(worker.takeSockets());
      return this.#fail(status.code, isHopeless);
    }
    this.#replace(place, status);
  }

  #replace(place: Place, status: Deno.CommandStatus): void {
    const { worker, backoff } = place;
    const waitMs = place.youngDeaths === 0 ? 0 : backoff.nextMs();
    if (waitMs === 0) backoff.reset();
    this.#restarts++;
    this.program.log.error(
      `worker ${worker.index} (process ${worker.pid}) has ended ` +
        `(${wordsOf(status)}): the connections that it carried are lost; ` +
        "another one takes its place",
      { code: "TUN908", worker: worker.index },
    );
    this.#help(place, worker.socketsOf("tcp"));
    this.#startAgain(place, worker.takeSockets(), waitMs);
  }

  /** As long as no process can be started, others serve in its place. */
  #startAgain(
    place: Place,
    sockets: readonly WaitingSocket[],
    waitMs: number,
  ): void {
    const { log, timers } = this.program;
    const { backoff, worker: { index } } = place;
    timers.after(waitMs, () => {
      if (this.isDraining) return close(sockets);
      let next: Place;
      try {
        next = this.#start(index, sockets, false);
      } catch (error) {
        const reason = `worker ${index} cannot be started: ${messageOf(error)}`;
        const code = "TUN908";
        log.error(`${reason}; trying again`, { code, worker: index });
        return this.#startAgain(place, sockets, backoff.nextMs());
      }
      next.helper = place.helper;
      unawaited("task", this.#startedAgain(next));
    });
  }

  async #startedAgain(place: Place): Promise<void> {
    const { worker } = place;
    await worker.started;
    if (!worker.isUp) return;
    this.#takeUp(place);
    this.program.log.info(
      `worker ${worker.index} runs again (process ${worker.pid})`,
    );
  }

  /** Another worker accepts what would wait. */
  #help(place: Place, sockets: readonly WaitingSocket[]): void {
    if (place.helper !== undefined || sockets.length === 0) return;
    const helper = this.workers.find((one) =>
      one !== place.worker && !one.isSilent
    );
    helper?.adopt(sockets);
    place.helper = helper;
  }

  #release(place: Place): void {
    const { helper } = place;
    place.helper = undefined;
    const isWanted = this.#places.some((other) => other.helper === helper);
    if (!isWanted) helper?.tell({ kind: "let-go" });
  }

  /** Looks after them until all have ended. */
  async #watch(): Promise<void> {
    while (this.#state !== "over") {
      await new Promise<void>((resolve) =>
        this.program.timers.after(LOOK_MS, resolve)
      );
      for (const place of this.#places) this.#look(place);
    }
  }

  #look(place: Place): void {
    const { worker } = place;
    if (!worker.isUp || this.isDraining) return;
    const { log } = this.program;
    const wasSilent = place.isSilent;
    place.isSilent = worker.isSilent;
    unawaited("task", worker.look());
    if (place.isSilent === wasSilent) return;
    if (wasSilent) {
      log.warn(`worker ${worker.index} answers again`, { code: "TUN908" });
      return this.#release(place);
    }
    log.error(
      `worker ${worker.index} (process ${worker.pid}) does not answer: ` +
        "others accept in its place",
      { code: "TUN908", worker: worker.index },
    );
    this.#help(place, worker.socketsOf("tcp"));
  }

  // --- The end ---------------------------------------------------------------

  #end(): void {
    if (this.isDraining) return;
    this.#state = "ending";
    const { options: { endMs }, program: { timers } } = this;
    if (endMs > 0) timers.after(endMs + STUCK_MS, () => this.#killAll());
    this.#endIfAll();
  }

  #endIfAll(): void {
    if (this.#places.some(({ worker }) => !worker.isGone)) return;
    if (this.#state === "over") return;
    this.#state = "over";
    this.program.close();
    if (!this.#isHandedOver && !this.store.areKept) {
      // It is removed already, or we may not.
      const remove = (path: string) => quietly(() => Deno.removeSync(path));
      this.#places.forEach(({ worker }) => worker.paths.forEach(remove));
    }
    this.program.log.info("all workers have ended");
    this.#finished.resolve(
      this.program.end().then(() => {
        if (this.#failure !== undefined) throw this.#failure;
      }),
    );
  }

  #fail(code: number, isHopeless: boolean): void {
    const known = EXIT_CODES.find(([one]) => one === code && one !== 0)?.[0];
    const what = isHopeless
      ? `A worker has ended ${YOUNG_DEATHS_MAX} times within a second of its ` +
        "start"
      : "The first worker could not start";
    this.#failure ??= new CommandFailure(
      known ?? ExitCode.FAILURE,
      `${what}: see what it said above`,
      undefined,
      "TUN908",
    );
    this.stop("another worker could not be started");
    this.#endIfAll();
  }

  #killAll(): void {
    if (this.#state === "over") return;
    for (const { worker } of this.#places) worker.kill();
  }
}

/** How long a worker may take to stop at once. */
const STOP_MS = 5_000;

function wordsOf({ code, signal }: Deno.CommandStatus): string {
  return signal === null ? `exit code ${code}` : signal;
}

function copyOf(socket: WaitingSocket): WaitingSocket {
  return { ...socket, descriptor: copyDescriptor(socket.descriptor) };
}

function close(sockets: readonly WaitingSocket[]): void {
  closeAll(sockets.map(({ descriptor }) => descriptor));
}

/**
 * @param program What their parent is, besides.
 * @throws {UsageError} This machine cannot.
 * @throws {ListenError | CommandFailure} Nothing stays open.
 */
export async function startWorkers(
  start: WorkersStart,
  program: Program,
): Promise<WorkerGroup> {
  const store = socketStore();
  if (store === undefined) {
    throw new UsageError(
      `Cannot use --workers=${start.count}: sockets are the platform's here, ` +
        "which processes cannot share; leave it out, or allow FFI on Linux",
    );
  }
  try {
    return await WorkerGroup.start(start, store, program);
  } catch (error) {
    program.close();
    throw error;
  }
}
