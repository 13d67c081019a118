/**
 * Checks the health of a port's backends, if its service wants that.
 *
 * A check is a dial by the same route as a client's, and a request on it unless
 * it is one of TCP (`health_question.ts`). Several equal answers in a row make
 * a backend well or ill, and the balancer leaves ill ones out unless all are. A
 * datagram service cannot answer such a question, so it is checked only if its
 * service names a TCP port to ask.
 *
 * @module
 */

import { unawaited } from "../../../platform/errors/internal_errors.ts";
import {
  HEALTH_FALL,
  HEALTH_RISE,
  type HealthCheck,
} from "../../catalog/model/model.ts";
import type { Target } from "../../catalog/snapshot.ts";
import type { Timer } from "../../../proto/sync/clock.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import type { Backend } from "../balancer/backend.ts";
import { askHealth } from "./health_question.ts";
import type { ProxiedPort, ProxyContext } from "../listeners/proxied_port.ts";
import { EndpointDialError } from "../endpoints/endpoint_dialer.ts";

type CheckContext = Pick<ProxyContext, "timers" | "random" | "dialer" | "log">;

export class HealthChecks {
  readonly #checks = new Map<Backend, BackendCheck>();
  #policy = "";

  /**
   * @param onDeserted Clients of these backends should move: they are ill and
   *   another backend is well. Called after every check that finds this.
   */
  constructor(
    private readonly port: ProxiedPort,
    private readonly context: CheckContext,
    private readonly onDeserted: (backends: readonly Backend[]) => void,
  ) {}

  /** The service or its backends have changed. */
  update(): void {
    const { health } = this.port.policy;
    const policy = JSON.stringify(health ?? null);
    if (policy !== this.#policy) this.stop();
    this.#policy = policy;
    if (health === undefined) return;
    if (this.port.protocol === "udp" && health.port === undefined) return;
    const present = new Set(this.port.balancer.backends);
    for (const [backend, check] of this.#checks) {
      if (present.has(backend)) continue;
      check.stop();
      this.#checks.delete(backend);
    }
    for (const backend of present) {
      if (this.#checks.has(backend)) continue;
      const check = new BackendCheck(
        this.port,
        backend,
        health,
        this.context,
        () => this.#leaveIll(),
      );
      this.#checks.set(backend, check);
      // The first check comes soon: before it nothing is known.
      check.now();
    }
  }

  /** Ends the checks; no backend counts as ill any more. */
  stop(): void {
    for (const check of this.#checks.values()) check.stop();
    this.#checks.clear();
  }

  #leaveIll(): void {
    const deserted = this.port.balancer.deserted
      .filter(({ connections }) => connections > 0);
    if (deserted.length > 0) this.onDeserted(deserted);
  }
}

/** The result of one check. */
type Finding =
  | { readonly kind: "well" }
  | { readonly kind: "ill"; readonly problem: string }
  | { readonly kind: "unknown" };

/** The checks of one backend, one after another. */
class BackendCheck {
  readonly #stopped = new AbortController();
  /** Consecutive answers that contradict the present state. */
  #against = 0;
  #timer: Timer | undefined;

  /** @param onFinding Called when a check has a result. */
  constructor(
    private readonly port: ProxiedPort,
    private readonly backend: Backend,
    private readonly how: HealthCheck,
    private readonly context: CheckContext,
    private readonly onFinding: () => void,
  ) {}

  /** A check that an internal error ended is tried again later. */
  now(): void {
    unawaited("proxy", this.#check(), () => this.#wait());
  }

  stop(): void {
    this.#stopped.abort();
    this.#timer?.cancel();
    this.backend.health = "unknown";
  }

  async #check(): Promise<void> {
    const finding = await this.#ask();
    if (this.#stopped.signal.aborted) return;
    if (finding.kind !== "unknown") this.#apply(finding);
    this.onFinding();
    this.#wait();
  }

  #wait(): void {
    if (this.#stopped.signal.aborted) return;
    // A tenth more or less, so that a thousand checks do not stay in step.
    const spread = 0.9 + 0.2 * this.context.random();
    this.#timer = this.context.timers.after(
      this.how.intervalMs * spread,
      () => this.now(),
    );
  }

  /** One answer alone changes no known state. */
  #apply(finding: Extract<Finding, { kind: "well" | "ill" }>): void {
    const backend = this.backend;
    const { health } = backend;
    const { rise = HEALTH_RISE, fall = HEALTH_FALL } = this.how;
    if (finding.kind === "ill") backend.lastError = finding.problem;
    this.#against = finding.kind === health ? 0 : this.#against + 1;
    const isEnough = health === "unknown" ||
      this.#against >= (finding.kind === "well" ? rise : fall);
    if (finding.kind !== health && isEnough) {
      this.#against = 0;
      this.#tell(finding);
      backend.health = finding.kind;
    }
    if (finding.kind === "well") this.#takeBack(health === "ill" && isEnough);
  }

  /**
   * A backend that answers on the port that is dialed may be dialed again at
   * once, whatever dials found. An answer on another port allows that only
   * after the backend was silent there as well.
   */
  #takeBack(isWellAgain: boolean): void {
    const { port } = this.how;
    const isAskedItself = this.port.protocol === "tcp" &&
      (port === undefined || port === this.backend.target.port);
    if (!isAskedItself && !isWellAgain) return;
    const wasOut = this.backend.isEjected(this.context.timers.now());
    this.backend.recovered();
    if (!wasOut) return;
    this.context.log.event(
      `${this.port.key}: ${this.backend.key} is back: its health check was ` +
        "answered",
    );
  }

  async #ask(): Promise<Finding> {
    const { timeoutMs } = this.how;
    let conduit: Conduit;
    const target = this.#target;
    try {
      conduit = await this.context.dialer.dial(target, {
        protocol: "tcp",
        timeoutMs,
        agentOnFailure: this.port.policy.agentOnFailure ?? false,
        signal: this.#stopped.signal,
      });
    } catch (error) {
      if (!(error instanceof EndpointDialError)) throw error;
      // A lack of this machine says nothing about the backend's health.
      return error.fault === "target"
        ? { kind: "ill", problem: error.message }
        : { kind: "unknown" };
    }
    if (this.how.kind === "tcp") {
      this.#closeGracefully(conduit);
      return { kind: "well" };
    }
    const problem = await askHealth(conduit, this.how, target, {
      timers: this.context.timers,
      signal: this.#stopped.signal,
    });
    return problem === undefined ? { kind: "well" } : { kind: "ill", problem };
  }

  get #target(): Target {
    const { target } = this.backend;
    const { port } = this.how;
    return port === undefined ? target : { ...target, port };
  }

  /** Ends with a half-close, because many servers log a reset as an error. */
  #closeGracefully(conduit: Conduit): void {
    const { timeoutMs } = this.how;
    const deadline = this.context.timers.after(
      timeoutMs,
      () => conduit.reset("the health check is done"),
    );
    conduit.attach({
      onData: (chunk) => conduit.consumed(chunk.length),
      onWritable: () => {},
      onEnd: () => {},
      onClose: () => deadline.cancel(),
    });
    conduit.end();
  }

  #tell(finding: Extract<Finding, { kind: "well" | "ill" }>): void {
    const { log } = this.context;
    const who = `${this.port.key}: ${this.backend.key}`;
    if (finding.kind === "ill") log.event(`${who} is ill: ${finding.problem}`);
    // The first time it is only what everybody hoped.
    else if (this.backend.health === "ill") log.event(`${who} is well again`);
  }
}
