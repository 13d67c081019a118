/**
 * A new process replaces a running one: it takes over the listening sockets when
 * it is ready, and offers its own to the next process.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { HandoverOffer } from "../../net/handover/handover_offer.ts";
import { successorWaitMs } from "../../net/program/drain.ts";
import { UPGRADE_MS } from "../../net/handover/upgrade.ts";
import { UpgradeRequests } from "../../net/handover/upgrade_requests.ts";
import {
  Takeover,
  type TakeoverProblem,
  TakeoverRefused,
} from "../../net/handover/takeover.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import {
  type Environment,
  inheritSockets,
  ServiceManager,
} from "../../net/handover/systemd.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { Log } from "../../platform/log/log.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { type SocketStore, socketStore } from "../../net/bind/socket_store.ts";
import { CommandFailure, ExitCode } from "./exit_codes.ts";
import type { Replaceable, Running } from "../../net/program/program.ts";
import { UsageError } from "../flags/usage_error.ts";

/** How a process replaces another. */
export interface SuccessionOptions {
  /** Such as `proxy`. */
  readonly command: string;
  /** The socket on which processes ask each other; absent: none. */
  readonly address: string | undefined;
  /** `--replace`. */
  readonly replace: boolean;
  /** Flags that tell a second one of its kind from the first. */
  readonly ownFlags: string;
  readonly environment: Environment;
}

/**
 * A service manager waits this long for a process that is not ready. What the
 * process waits for may never come, and a restart would not help.
 */
const READY_WAIT_MS = 10_000;

/** See the module description. */
export class Succession {
  readonly #store: SocketStore | undefined;
  readonly #manager: ServiceManager | undefined;
  /** How long this process needed until it asked for the sockets. */
  readonly #startMs = performance.now();
  /** Sockets that the service manager had kept open. */
  #inherited: readonly string[] = [];
  #takeover: Takeover | undefined;
  #offer: HandoverOffer | undefined;
  #life: Timer | undefined;

  private constructor(
    private readonly options: SuccessionOptions,
    private readonly log: Log,
  ) {
    this.#store = socketStore();
    this.#manager = ServiceManager.find(options.environment);
  }

  /**
   * Asks the running process for its sockets, if there is one.
   *
   * @throws {CommandFailure} It must not be replaced, or does not answer.
   * @throws {UsageError}
   */
  static async begin(
    options: SuccessionOptions,
    log: Log,
  ): Promise<Succession> {
    const succession = new Succession(options, log);
    succession.#inherit();
    await succession.#ask();
    return succession;
  }

  /**
   * No other process reads this one's output from now on. Its child processes
   * keep its stderr.
   */
  writeByItself(): void {
    this.#takeover?.adoptStderr();
  }

  /**
   * Starts the new process. If that fails, the running one continues.
   *
   * @throws What `start` throws.
   */
  async start(start: () => Promise<Replaceable>): Promise<Running> {
    try {
      const running = await start();
      unawaited("task", this.#follow(running));
      return this.#supervised(running);
    } catch (error) {
      this.#takeover?.abandon();
      this.#store?.close();
      throw error;
    }
  }

  async #follow(running: Replaceable): Promise<void> {
    const over = () => {
      this.#offer?.close();
      this.#takeover?.abandon();
    };
    running.finished.then(over, over);
    const takeover = this.#takeover;
    if (takeover !== undefined) await this.#takeOver(takeover, running);
    else if (this.#inherited.length > 0) await this.#startInherited(running);
    this.#makeOffer(running);
    const ready = running.whenReady(takeover?.agents ?? 0);
    this.#reportReady(running, ready);
    await ready;
    const unwanted = this.#store?.close() ?? [];
    if (unwanted.length > 0) {
      this.log.info(`not served any more: ${unwanted.join(", ")}`);
    }
    if (this.#inherited.length > 0) this.#manager?.keepNothing();
  }

  /** Reports to the service manager, too. */
  #supervised(running: Replaceable): Running {
    const [manager, store] = [this.#manager, this.#store];
    return {
      finished: running.finished,
      shutdown: (why) => {
        if (store !== undefined && !running.isDraining) {
          store.areKept = manager?.stopping(store) === true;
          const isFound = this.#offer !== undefined && !store.areKept;
          // A user who can press Ctrl-C starts no second program beside it.
          if (isFound && why === "SIGTERM") {
            running.awaitSuccessor(successorWaitMs(this.#startMs));
          }
        }
        running.shutdown(why);
      },
      stop: (reason) => running.stop(reason),
      reload: () => {
        manager?.reloading();
        running.reload();
        manager?.ready();
      },
    };
  }

  #reportReady(running: Replaceable, ready: Promise<void>): void {
    const manager = this.#manager;
    if (manager === undefined) return;
    const tell = () => {
      timer.cancel();
      // The manager may know of the process before this one.
      if (!running.isDraining) manager.ready(`MAINPID=${Deno.pid}`);
      this.#showLife(manager, running);
    };
    const timer = systemTimers.after(READY_WAIT_MS, tell);
    unawaited("task", ready.then(tell));
  }

  /** Until another process is the main one; only the first one is watched. */
  #showLife(manager: ServiceManager, running: Replaceable): void {
    const { watchdogMs } = manager;
    const isTold = this.#life !== undefined || running.isDraining;
    if (watchdogMs === undefined || isTold) return;
    const say = () => {
      manager.alive();
      this.#life = systemTimers.after(watchdogMs / 3, say);
    };
    say();
    const end = () => this.#life?.cancel();
    running.finished.then(end, end);
  }

  #inherit(): void {
    if (this.#store === undefined) return;
    const { environment } = this.options;
    this.#inherited = inheritSockets(this.#store, environment);
    if (this.#inherited.length === 0) return;
    this.log.info(`sockets were kept open: ${this.#inherited.join(", ")}`);
  }

  /** No other process accepts instead, so most sockets are started at once. */
  async #startInherited(running: Replaceable): Promise<void> {
    const late = new Set(running.late ?? []);
    this.#store!.start((key) => !late.has(key));
    // The earlier number of linked agents is unknown; one is better than none.
    if (late.size > 0) await running.whenReady(1);
    this.#store!.start();
    running.tookOver?.();
  }

  async #takeOver(takeover: Takeover, running: Replaceable): Promise<void> {
    const { early } = running;
    if (early !== undefined) await takeover.take(early);
    const ready = running.whenReady(takeover.agents, true);
    await Promise.race([ready, takeover.over]);
    // It may be ending meanwhile; then it takes over nothing.
    if (running.isDraining) return takeover.abandon();
    if (running.recall) await takeover.recall((part) => running.recall!(part));
    await takeover.take();
    running.tookOver?.();
    this.log.info(`took over from process ${takeover.pid}`);
  }

  #makeOffer(running: Replaceable): void {
    const { address, command } = this.options;
    if (address === undefined || this.#store === undefined) return;
    try {
      this.#offer = new HandoverOffer(address, {
        command,
        isDraining: () => running.isDraining,
        asked: (isReadying) =>
          running.awaitSuccessor(isReadying ? UPGRADE_MS : 0),
        agents: async () => {
          await running.askForAgents?.();
          return running.agents ?? 0;
        },
        upgrades: this.#upgrades(running),
        handedOver: ({ isAll, pid, isOurs }) => {
          // Only from this process does the manager take that another is it.
          if (isOurs) {
            this.#life?.cancel();
            this.#manager?.ready(`MAINPID=${pid}`);
          }
          if (isAll) running.handedOver(pid);
          else running.handedOverEarly?.(pid);
        },
        memory: () => running.memory ?? [],
        successorEnded: () => running.successorEnded?.(),
      }, { store: this.#store, log: this.log });
    } catch (error) {
      this.log.warn(
        `no other process can take over at ${address}: ` +
          messageOf(error),
        { code: "TUN913" },
      );
    }
  }

  #upgrades(running: Replaceable): UpgradeRequests {
    return new UpgradeRequests({
      command: this.options.command,
      words: Deno.args,
      environment: () => Deno.env.toObject(),
      isBusy: () => running.isDraining,
      timers: systemTimers,
      log: this.log,
      forward: (bytes) => void Deno.stderr.writeSync(bytes),
    });
  }

  async #ask(): Promise<void> {
    const { address, command, replace } = this.options;
    if (this.#store === undefined || address === undefined) {
      if (!replace) return;
      throw new UsageError(
        address === undefined
          ? "Cannot --replace: say where to meet with --handover-socket"
          : "Cannot --replace: sockets are the platform's here, which cannot " +
            "be handed over",
      );
    }
    try {
      this.#takeover = await Takeover.open(
        address,
        { command, replace },
        this.#store,
      );
      const { pid } = this.#takeover ?? {};
      if (pid === undefined) return;
      this.log.info(`takes over from process ${pid} when it is ready`);
    } catch (error) {
      if (error instanceof TakeoverRefused) throw this.#refused(error);
      // For any other fault, opening the ports gives a better message.
      this.log.detail(
        `cannot ask at ${address} who runs: ${messageOf(error)}`,
      );
    }
  }

  #refused(error: TakeoverRefused): CommandFailure {
    const { problem, pid } = error;
    const { command, address, ownFlags } = this.options;
    const sentences: Readonly<Record<TakeoverProblem, string>> = {
      running: `A tunnel ${command} runs here already (process ${pid}): take ` +
        `its place with --replace, or give this one ${ownFlags} of its own`,
      busy: `Another process is about to take the place of process ${pid}`,
      other:
        `Process ${pid} listens at ${address} and is no tunnel ${command}` +
        `: give this one a --state-dir of its own, or a --handover-socket`,
      silent: `Process ${pid}, whose place is wanted, does not answer at ` +
        `${address}: end it first`,
    };
    return new CommandFailure(ExitCode.FAILURE, sentences[problem], error);
  }
}
