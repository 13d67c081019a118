/**
 * Asks the backends of a port whether they live, if its service wants that.
 *
 * A check is a dial by the same road as a client's, and for `http` a request on
 * it. One answer is enough, either way: who is ill is left out by the balancer
 * unless all are. A datagram service has no way to say that it lives, so it is
 * asked only where its service names another port that has.
 *
 * @module
 */

import { unawaited } from "../../host/process/internal_errors.ts";
import type { HealthCheck } from "../../catalog/model.ts";
import type { Target } from "../../catalog/snapshot.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { Backend } from "./balancer/backend.ts";
import type { ProxiedPort, ProxyContext } from "./proxied_port.ts";
import { ReachError } from "./reach.ts";

/** Of an answer, so much is read: the status line, and not who fills memory. */
const ANSWER_OCTETS_MAX = 1_024;

type CheckContext = Pick<ProxyContext, "timers" | "random" | "reach" | "log">;

/** See the module description. */
export class HealthChecks {
  readonly #port: ProxiedPort;
  readonly #context: CheckContext;
  readonly #onDeserted: (backends: readonly Backend[]) => void;
  readonly #checks = new Map<Backend, BackendCheck>();
  #policy = "";

  /**
   * @param onDeserted Whoever is with these should go elsewhere: they are ill
   *   and another one is well. Said after every check for which that is so.
   */
  constructor(
    port: ProxiedPort,
    context: CheckContext,
    onDeserted: (backends: readonly Backend[]) => void,
  ) {
    this.#port = port;
    this.#context = context;
    this.#onDeserted = onDeserted;
  }

  /** The service or its backends have changed. */
  update(): void {
    const { health } = this.#port.policy;
    const policy = JSON.stringify(health ?? null);
    if (policy !== this.#policy) this.stop();
    this.#policy = policy;
    if (health === undefined) return;
    if (this.#port.protocol === "udp" && health.port === undefined) return;
    const present = new Set(this.#port.balancer.backends);
    for (const [backend, check] of this.#checks) {
      if (present.has(backend)) continue;
      check.stop();
      this.#checks.delete(backend);
    }
    for (const backend of present) {
      if (this.#checks.has(backend)) continue;
      const check = new BackendCheck(this.#port, backend, health, {
        context: this.#context,
        onVerdict: () => this.#leaveIll(),
      });
      this.#checks.set(backend, check);
      check.start();
    }
  }

  /** No more checks; nobody counts as ill any more. */
  stop(): void {
    for (const check of this.#checks.values()) check.stop();
    this.#checks.clear();
  }

  #leaveIll(): void {
    const deserted = this.#port.balancer.deserted
      .filter(({ connections }) => connections > 0);
    if (deserted.length > 0) this.#onDeserted(deserted);
  }
}

interface CheckOwner {
  readonly context: CheckContext;
  /** It was asked, and what came of it is known. */
  readonly onVerdict: () => void;
}

/** The checks of one backend, one after the other. */
class BackendCheck {
  readonly #port: ProxiedPort;
  readonly #backend: Backend;
  readonly #how: HealthCheck;
  readonly #context: CheckContext;
  readonly #onVerdict: () => void;
  readonly #stopped = new AbortController();
  #timer: Timer | undefined;

  constructor(
    port: ProxiedPort,
    backend: Backend,
    how: HealthCheck,
    { context, onVerdict }: CheckOwner,
  ) {
    this.#port = port;
    this.#backend = backend;
    this.#how = how;
    this.#context = context;
    this.#onVerdict = onVerdict;
  }

  /** The first one soon: until then nobody knows anything. */
  start(): void {
    this.#checkNow();
  }

  stop(): void {
    this.#stopped.abort();
    this.#timer?.cancel();
    this.#backend.health = "unknown";
  }

  /** What a slip of ours keeps from its verdict has another try later. */
  #checkNow(): void {
    unawaited("proxy", this.#check(), () => this.#wait());
  }

  async #check(): Promise<void> {
    const problem = await this.#ask();
    if (this.#stopped.signal.aborted) return;
    const health = problem === undefined ? "well" : "ill";
    if (problem !== undefined) this.#backend.lastError = problem;
    if (health !== this.#backend.health) this.#tell(health, problem);
    this.#backend.health = health;
    this.#onVerdict();
    this.#wait();
  }

  #wait(): void {
    if (this.#stopped.signal.aborted) return;
    // A tenth more or less, so that a thousand checks do not stay in step.
    const spread = 0.9 + 0.2 * this.#context.random();
    this.#timer = this.#context.timers.after(
      this.#how.intervalMs * spread,
      () => this.#checkNow(),
    );
  }

  /** @returns What is wrong, if anything is. */
  async #ask(): Promise<string | undefined> {
    const { timeoutMs } = this.#how;
    let conduit: Conduit;
    const target = this.#target;
    try {
      conduit = await this.#context.reach.dial(target, {
        protocol: "tcp",
        timeoutMs,
        agentOnFailure: this.#port.policy.agentOnFailure ?? false,
        signal: this.#stopped.signal,
      });
    } catch (error) {
      if (!(error instanceof ReachError)) throw error;
      // What this machine lacks is no illness of a backend's.
      return error.fault === "target" ? error.message : undefined;
    }
    if (this.#how.kind === "tcp") return this.#sayGoodbye(conduit);
    return await this.#request(conduit, target, this.#how.path);
  }

  get #target(): Target {
    const { target } = this.#backend;
    const { port } = this.#how;
    return port === undefined ? target : { ...target, port };
  }

  /** Ends in order: many servers log a reset as somebody's mistake. */
  #sayGoodbye(conduit: Conduit): undefined {
    const { timeoutMs } = this.#how;
    const deadline = this.#context.timers.after(
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

  async #request(
    conduit: Conduit,
    { address, port }: Target,
    path: string,
  ): Promise<string | undefined> {
    const answered = Promise.withResolvers<string | undefined>();
    const { timeoutMs } = this.#how;
    const deadline = this.#context.timers.after(
      timeoutMs,
      () => answered.resolve(`no answer to GET ${path} within ${timeoutMs} ms`),
    );
    let text = "";
    conduit.attach({
      onData(chunk) {
        text += new TextDecoder().decode(chunk);
        conduit.consumed(chunk.length);
        const line = /^([^\r\n]*)\r?\n/.exec(text)?.[1];
        if (line !== undefined) answered.resolve(judge(line, path));
        else if (text.length > ANSWER_OCTETS_MAX) {
          answered.resolve(`GET ${path} was answered with no HTTP status`);
        }
      },
      onWritable() {},
      onEnd: () => answered.resolve(`GET ${path} was not answered`),
      onClose: () => answered.resolve(`GET ${path} was not answered`),
    });
    const host = address.includes(":") ? `[${address}]` : address;
    conduit.write(new TextEncoder().encode(
      `GET ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\n` +
        "User-Agent: tunnel-proxy\r\nConnection: close\r\n\r\n",
    ));
    const problem = await answered.promise;
    deadline.cancel();
    conduit.reset("the health check is done");
    return problem;
  }

  #tell(health: "well" | "ill", problem: string | undefined): void {
    const { log } = this.#context;
    const who = `${this.#port.key}: ${this.#backend.key}`;
    if (health === "ill") log.event(`${who} is ill: ${problem}`);
    // The first time it is only what everybody hoped.
    else if (this.#backend.health === "ill") log.event(`${who} is well again`);
  }
}

function judge(statusLine: string, path: string): string | undefined {
  const status = Number(/^HTTP\/1\.[01] ([0-9]{3})/.exec(statusLine)?.[1]);
  if (status >= 200 && status < 400) return undefined;
  return Number.isNaN(status)
    ? `GET ${path} was answered with no HTTP status`
    : `GET ${path} was answered ${status}`;
}
