/**
 * A process that is one of several workers: it shares its addresses with the
 * others, and does what its parent says.
 *
 * @module
 */

import { PassedHttp, passHttp } from "../../../net/admin/passed_http.ts";
import {
  type SocketStore,
  socketStore,
} from "../../../net/bind/socket_store.ts";
import { packetSocketOf, streamOf } from "../../../net/handover/socket_pair.ts";
import { guarded } from "../../../platform/errors/internal_errors.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { Replaceable } from "../succession.ts";
import { type SignalSource, untilStopped } from "../until_stopped.ts";
import {
  closeAll,
  hear,
  type Order,
  type Report,
  WorkerChannel,
} from "./worker_channel.ts";
import type { ChosenPort, WorkerRole } from "./worker_role.ts";

/**
 * Runs what `start` gets up until the parent, or its own end, stops it.
 *
 * @throws What `start` throws.
 */
export async function runWorker(
  start: () => Promise<Replaceable>,
  role: WorkerRole,
  log: Log,
): Promise<void> {
  const worker = new Worker(role, log);
  try {
    await worker.given;
    const running = await start();
    worker.started(running);
    await untilStopped(running, PARENTS, log);
  } finally {
    worker.close();
  }
}

/**
 * Terminals and service managers signal every process of a program; the parent
 * passes on what it makes of it.
 */
const PARENTS: SignalSource = {
  addSignalListener: (signal) => Deno.addSignalListener(signal, ignore),
  removeSignalListener: (signal) => Deno.removeSignalListener(signal, ignore),
};

function ignore(): void {}

class Worker {
  readonly #store: SocketStore;
  readonly #http: PassedHttp;
  readonly #channel: WorkerChannel<Report, Order>;
  readonly #go = Promise.withResolvers<void>();
  /** Ports that the first worker was given, and that are not used here yet. */
  readonly #chosen: ChosenPort[];
  /** `alone`: nobody serves meanwhile; `held`: others do. */
  #start: "alone" | "held" | "over";
  #running: Replaceable | undefined;
  #isClosed = false;
  /** Sockets that are closed here, and that the parent may not know of yet. */
  #unnoted = 0;
  readonly #settling: (() => void)[] = [];

  constructor(role: WorkerRole, private readonly log: Log) {
    this.#store = socketStore()!;
    this.#chosen = [...role.chosen];
    this.#start = role.isFirst ? "alone" : "held";
    this.#channel = new WorkerChannel(packetSocketOf(role.descriptor));
    this.#http = new PassedHttp(role.addresses);
    passHttp(this.#http);
    this.#share();
    // It may be told to end before it is up.
    for (const signal of SIGNALS) PARENTS.addSignalListener(signal, ignore);
    hear(
      this.#channel,
      (order, descriptors) => this.#obey(order, descriptors),
      () => this.#orphaned(),
    );
  }

  /** Settles when it has the sockets of its predecessor. */
  get given(): Promise<void> {
    return this.#go.promise;
  }

  started(running: Replaceable): void {
    this.#running = running;
    this.#start = "over";
    const { early = [], late = [] } = running;
    this.#channel.send({ report: "started", early, late });
  }

  close(): void {
    this.#isClosed = true;
    this.#channel.close();
    passHttp(undefined);
    this.#store.sharing = undefined;
    for (const signal of SIGNALS) PARENTS.removeSignalListener(signal, ignore);
  }

  #share(): void {
    const phase = () => this.#start;
    this.#store.sharing = {
      get isAlone() {
        return phase() === "alone";
      },
      get isHeld() {
        return phase() === "held";
      },
      portFor: (kind, hostname) => {
        const at = this.#chosen.findIndex((one) =>
          one.kind === kind && one.hostname === hostname
        );
        return at < 0 ? undefined : this.#chosen.splice(at, 1)[0]!.port;
      },
      chose: (kind, hostname, port) =>
        this.#channel.send({ report: "chose", port: { kind, hostname, port } }),
      opened: (key, { descriptor, isHeld }) =>
        this.#channel.send({ report: "opened", key, isHeld }, [descriptor]),
      closed: (key) => {
        this.#unnoted++;
        this.#channel.send({ report: "closed", key });
      },
      settled: () => this.#settled(),
    };
  }

  #settled(): Promise<void> {
    if (this.#unnoted === 0) return Promise.resolve();
    return new Promise((resolve) => this.#settling.push(resolve));
  }

  #noted(count: number): void {
    this.#unnoted = Math.max(0, this.#unnoted - count);
    if (this.#unnoted > 0) return;
    for (const settle of this.#settling.splice(0)) settle();
  }

  #obey(order: Order, descriptors: readonly number[]): void {
    const running = this.#running;
    switch (order.order) {
      case "give":
        for (const one of descriptors) this.#store.put(one, order.isHeld);
        return;
      case "go":
        return this.#go.resolve();
      case "http":
        return this.#http.accept(order.use, streamOf(descriptors[0]!));
      case "start":
        return this.#store.start((key) => order.keys?.includes(key) ?? true);
      case "noted":
        return this.#noted(1);
      case "pass":
        return descriptors.forEach((one) => this.#store.pass(order.key, one));
      case "adopt":
        return descriptors.forEach((one) => this.#store.adopt(one));
      case "let go":
        return this.#store.letGo();
      case "hold":
        return this.#store.hold((key) => order.keys.includes(key));
      case "tell":
        return this.#channel.send({
          report: "told",
          agents: running?.agents ?? 0,
        });
      case "shutdown":
        this.#store.areKept = order.areKept;
        return running?.shutdown(order.why);
      case "stop":
        return running === undefined
          ? Deno.exit(1)
          : running.stop(order.reason);
    }
    closeAll(descriptors);
    if (running !== undefined) this.#obeyRunning(order, running);
  }

  #obeyRunning(order: Order, running: Replaceable): void {
    switch (order.order) {
      case "get ready":
        running.whenReady(order.agents, order.isServed).then(
          () => this.#channel.send({ report: "ready" }),
        );
        return;
      case "await successor":
        return running.awaitSuccessor(order.ms);
      case "early":
        return running.handedOverEarly?.(order.pid);
      case "hand over":
        this.#store.handOver();
        return running.handedOver(order.pid);
      case "successor ended":
        return running.successorEnded?.();
      case "reload":
        return running.reload();
    }
  }

  /** What it carries goes on; who comes finds another process, or nobody. */
  #orphaned(): void {
    this.#noted(this.#unnoted);
    if (this.#isClosed) return;
    const running = this.#running;
    if (running === undefined) Deno.exit(1);
    if (running.isDraining) return;
    this.log.error(
      "the parent process has ended: this worker accepts nobody any more, " +
        "and ends when what it carries has ended",
      { code: "TUN908" },
    );
    this.#store.handOver();
    guarded("task", () => running.handedOver(Deno.ppid));
  }
}

const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
