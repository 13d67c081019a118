/**
 * A process that is one of several workers: it shares its addresses with the
 * others, and follows its parent's orders.
 *
 * @module
 */

import { plain } from "../../../net/admin/http_endpoints.ts";
import { joinGroup, type OwnGroup } from "../../../net/admin/own_group.ts";
import {
  type SocketStore,
  socketStore,
} from "../../../net/bind/socket_store.ts";
import { hear, PacketChannel } from "../../../net/handover/packet_channel.ts";
import { closeAll, shareDescriptors } from "../../../net/libc/descriptors.ts";
import { packetSocketOf } from "../../../net/handover/socket_pair.ts";
import {
  guarded,
  unawaited,
} from "../../../platform/errors/internal_errors.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { Replaceable } from "../../../net/program/program.ts";
import type { SignalSource } from "../signals.ts";
import { untilStopped } from "../until_stopped.ts";
import { askOver, ChannelHttp } from "./channel_http.ts";
import type { ChosenPort, Order, Report, WorkerRole } from "./worker_words.ts";

/**
 * Runs the program of `start` until the parent stops it, or it ends.
 *
 * @throws The errors of `start`.
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
 * Terminals and service managers signal every process of a program; only the
 * parent's order counts.
 */
const PARENTS: SignalSource = {
  addSignalListener: (signal) => Deno.addSignalListener(signal, ignore),
  removeSignalListener: (signal) => Deno.removeSignalListener(signal, ignore),
};

function ignore(): void {}

/** How far this process is. */
type Life =
  /** `isAlone`: no other process serves meanwhile. */
  | { readonly kind: "starting"; readonly isAlone: boolean }
  | { readonly kind: "running"; readonly program: Replaceable }
  | { readonly kind: "closed" };

class Worker {
  readonly #store: SocketStore;
  readonly #http: ChannelHttp;
  readonly #channel: PacketChannel<Report, Order>;
  readonly #given = Promise.withResolvers<void>();
  /** Ports that the first worker was given, and that are not used here yet. */
  readonly #chosen: ChosenPort[];
  #life: Life;
  /** Sockets that are closed here, and that the parent may not know of yet. */
  #unnoted = 0;
  readonly #settling: (() => void)[] = [];

  constructor(role: WorkerRole, private readonly log: Log) {
    this.#store = socketStore()!;
    this.#chosen = [...role.chosen];
    this.#life = { kind: "starting", isAlone: role.isFirst };
    this.#channel = new PacketChannel(packetSocketOf(role.descriptor));
    const group: OwnGroup = { ...role, ask: (path) => this.#ask(path) };
    joinGroup(group);
    this.#http = new ChannelHttp((request, peer) =>
      group.tells?.(request, peer) ?? plain(503, "it is starting")
    );
    this.#share();
    shareDescriptors(role.count);
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
    return this.#given.promise;
  }

  started(program: Replaceable): void {
    this.#life = { kind: "running", program };
    const { early = [], late = [] } = program;
    this.#channel.send({ kind: "started", ports: { early, late } });
  }

  close(): void {
    this.#life = { kind: "closed" };
    this.#channel.close();
    joinGroup(undefined);
    this.#store.sharing = undefined;
    for (const signal of SIGNALS) PARENTS.removeSignalListener(signal, ignore);
  }

  async #ask(path: string): Promise<Response> {
    const send = (descriptor: number) =>
      this.#channel.send({ kind: "ask" }, [descriptor]);
    return await askOver(send, path) ??
      plain(503, "the parent does not answer");
  }

  #share(): void {
    const isStarting = (isAlone: boolean) =>
      this.#life.kind === "starting" && this.#life.isAlone === isAlone;
    this.#store.sharing = {
      get isAlone() {
        return isStarting(true);
      },
      get isHeld() {
        return isStarting(false);
      },
      portFor: (kind, hostname) => {
        const at = this.#chosen.findIndex((one) =>
          one.kind === kind && one.hostname === hostname
        );
        return at < 0 ? undefined : this.#chosen.splice(at, 1)[0]!.port;
      },
      chose: (kind, hostname, port) =>
        this.#channel.send({ kind: "chose", port: { kind, hostname, port } }),
      opened: (key, { descriptor, isHeld }) =>
        this.#channel.send({ kind: "opened", key, isHeld }, [descriptor]),
      closed: (key) => {
        this.#unnoted++;
        this.#channel.send({ kind: "closed", key });
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
    switch (order.kind) {
      case "take":
        for (const one of descriptors) this.#store.put(one, order.isHeld);
        return;
      case "open":
        return this.#given.resolve();
      case "start":
        return this.#store.start((key) => order.keys?.includes(key) ?? true);
      case "hold":
        return this.#store.hold((key) => order.keys.includes(key));
      case "serve":
        return descriptors.forEach((one) => this.#store.pass(order.key, one));
      case "noted":
        return this.#noted(1);
      case "adopt":
        return descriptors.forEach((one) => this.#store.adopt(one));
      case "let-go":
        return this.#store.letGo();
      case "answer":
        return this.#http.serve(descriptors[0]!);
    }
    closeAll(descriptors);
    const life = this.#life;
    if (life.kind === "running") this.#obeyRunning(order, life.program);
    else if (order.kind === "stop") Deno.exit(1);
    else if (order.kind === "report") {
      this.#channel.send({ kind: "linked", agents: 0 });
    }
  }

  #obeyRunning(order: Order, program: Replaceable): void {
    switch (order.kind) {
      case "report":
        return this.#channel.send({
          kind: "linked",
          agents: program.agents ?? 0,
        });
      case "report-ready":
        program.whenReady(order.agents, order.isServed).then(
          () => this.#channel.send({ kind: "ready" }),
        );
        return;
      case "await-successor":
        return program.awaitSuccessor(order.ms);
      case "yield-early":
        return program.handedOverEarly?.(order.pid);
      case "yield":
        this.#store.handOver();
        return program.handedOver(order.pid);
      case "successor-ended":
        return program.successorEnded?.();
      case "shutdown":
        this.#store.areKept = order.areKept;
        return program.shutdown(order.why);
      case "stop":
        return program.stop(order.reason);
      case "reload":
        return program.reload();
      case "report-memory":
        return unawaited("task", this.#tellMemory(program));
      case "recall":
        return program.recall?.(order.part);
    }
  }

  async #tellMemory({ memory = [] }: Replaceable): Promise<void> {
    for await (const part of memory) {
      this.#channel.send({ kind: "memory", part });
    }
    this.#channel.send({ kind: "memory" });
  }

  /**
   * Its connections go on; new clients reach another process, if there is one.
   */
  #orphaned(): void {
    this.#noted(this.#unnoted);
    const life = this.#life;
    if (life.kind === "closed") return;
    if (life.kind === "starting") Deno.exit(1);
    const { program } = life;
    if (program.isDraining) return;
    this.log.error(
      "the parent process has ended: this worker accepts no more clients, " +
        "and ends when its connections have ended",
      { code: "TUN908" },
    );
    this.#store.handOver();
    guarded("task", () => program.handedOver(Deno.ppid));
  }
}

const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
