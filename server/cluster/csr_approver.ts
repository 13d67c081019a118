/**
 * Approves agents' CertificateSigningRequests, and denies those of impostors.
 * It leaves all other requests alone.
 *
 * Several servers may do this at once: the second one finds the request
 * decided, or receives a conflict and looks again.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { unawaited, worldly } from "../../platform/errors/internal_errors.ts";
import type {
  KubernetesClient,
  RequestOptions,
} from "../../neighbours/kubernetes/client.ts";
import { API_CLIENT_SIGNER } from "../../neighbours/kubernetes/csr.ts";
import {
  codeOf,
  isKubernetesTrouble,
  unlessMissing,
} from "../../neighbours/kubernetes/errors.ts";
import { ListWatch } from "../../neighbours/kubernetes/list_watch.ts";
import type { CertificateSigningRequest } from "../../neighbours/kubernetes/objects.ts";
import {
  CERTIFICATE_SIGNING_REQUESTS,
  objectPathOf,
} from "../../neighbours/kubernetes/paths.ts";
import { Backoff } from "../../proto/sync/backoff.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  type CsrDecision,
  type CsrPolicyOptions,
  decideCsr,
} from "./csr_policy.ts";

/** Time limit for each request that a decision takes. */
const TIMEOUT_MS = 10_000;

/** How often a decision is tried again because the request has changed meanwhile. */
export const CONFLICTS_MAX = 5;

/** Decisions under way at a time: a cluster's nodes may all ask at once. */
const AT_ONCE = 8;

/** Requests that may be good soon are looked at again after this. */
export const LOOK_AGAIN_MS = 60_000;

/** Longest wait after the API server could not be asked. */
export const APPROVAL_RETRY_CAP_MS = 30_000;

/** The counts and log lines of decisions. */
export interface ApproverObserver {
  /** `approved`, `denied`, `waiting`, `ignored` or `failed`. */
  decided(outcome: string): void;
  /** Something was decided. */
  event(message: string): void;
  /** A request was left to others. */
  detail(message: string): void;
  warn(message: string, code: Code): void;
}

/** What the approver needs from outside. */
export interface CsrApproverOptions extends CsrPolicyOptions {
  readonly client: Pick<KubernetesClient, "get" | "replace" | "stream">;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly observer: ApproverObserver;
}

/** Follows requests, and approves or denies agents' ones. */
export class CsrApprover {
  readonly #requests: ListWatch<CertificateSigningRequest>;
  readonly #backoff: Backoff;
  readonly #stopping = new AbortController();
  /** Names of requests that are to be looked at, in order. */
  readonly #due = new Set<string>();
  /** Names of those that may be good soon. */
  readonly #waiting = new Set<string>();
  #waitTimer: Timer | undefined;
  /** How many decisions are under way. */
  #running = 0;
  readonly #workers = new Set<Promise<void>>();
  /** Set while the API server is left alone. */
  #retryTimer: Timer | undefined;

  constructor(private readonly options: CsrApproverOptions) {
    const { client, timers, random, observer } = options;
    this.#backoff = new Backoff({ capMs: APPROVAL_RETRY_CAP_MS, random });
    this.#requests = new ListWatch({
      client,
      path: objectPathOf(CERTIFICATE_SIGNING_REQUESTS),
      query: { fieldSelector: `spec.signerName=${API_CLIENT_SIGNER}` },
      timers,
      random,
      onChanges: (changes) => {
        for (const { type, object } of changes) {
          const { name = "" } = object.metadata;
          this.#due.delete(name);
          if (type === "removed" || isDecided(object)) {
            this.#waiting.delete(name);
          } else this.#due.add(name);
        }
        this.#work();
      },
      onProblem: (error, retryMs) =>
        observer.warn(
          `cannot follow CertificateSigningRequests: ${error.message}; ` +
            `trying again in ${Math.round(retryMs)} ms`,
          "TUN802",
        ),
    });
  }

  start(): void {
    this.#requests.start();
  }

  /** Settles when no decision is being made. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#requests.stop(), ...this.#workers]);
    this.#retryTimer?.cancel();
    this.#waitTimer?.cancel();
  }

  #work(): void {
    if (this.#mustPause) return;
    while (this.#running < AT_ONCE && this.#due.size > 0) {
      this.#running++;
      const worker = this.#decideDue();
      this.#workers.add(worker);
      unawaited("task", worker.finally(() => this.#workers.delete(worker)));
    }
  }

  async #decideDue(): Promise<void> {
    try {
      while (true) {
        const [name] = this.#due;
        if (name === undefined || this.#mustPause) return;
        this.#due.delete(name);
        const error = await this.#attempt(name);
        if (error !== undefined) this.#failed(name, error);
      }
    } finally {
      // In the same turn as the last look, so that no new request is missed.
      this.#running--;
    }
  }

  get #mustPause(): boolean {
    return this.#retryTimer !== undefined || this.#stopping.signal.aborted;
  }

  /** @returns What of the world has prevented it. */
  async #attempt(name: string): Promise<Error | undefined> {
    try {
      await this.#decide(name);
      this.#backoff.reset();
      return undefined;
    } catch (error) {
      if (this.#stopping.signal.aborted) return undefined;
      return worldly("task", error, isKubernetesTrouble);
    }
  }

  /**
   * Other requests most likely have the same problem. They come first next
   * time, in case it was this one's alone.
   */
  #failed(name: string, error: Error): void {
    const { observer, timers } = this.options;
    observer.decided("failed");
    this.#due.add(name);
    // Another one has failed for the same reason, most likely.
    if (this.#retryTimer !== undefined) return;
    const retryMs = this.#backoff.nextMs();
    observer.warn(
      `cannot decide about CertificateSigningRequest ${name}: ` +
        `${error.message}; trying again in ${Math.round(retryMs)} ms`,
      "TUN802",
    );
    this.#retryTimer = timers.after(retryMs, () => {
      this.#retryTimer = undefined;
      this.#work();
    });
  }

  async #decide(name: string): Promise<void> {
    let request = this.#requests.objects.get(name);
    for (let conflicts = 0; request !== undefined; conflicts++) {
      const decision = await decideCsr(request, this.options);
      try {
        await this.#write(request, decision);
        this.#report(request, decision);
        return this.#wait(name, decision);
      } catch (error) {
        const code = codeOf(error);
        // Deleted meanwhile: then nothing waits for it.
        if (code === 404) return;
        if (code !== 409 || conflicts === CONFLICTS_MAX) throw error;
        request = await unlessMissing(
          this.options.client.get<CertificateSigningRequest>(
            objectPathOf(CERTIFICATE_SIGNING_REQUESTS, { name }),
            this.#request,
          ),
        );
      }
    }
  }

  async #write(
    request: CertificateSigningRequest,
    decision: CsrDecision,
  ): Promise<void> {
    if (decision.kind === "ignore" || decision.kind === "wait") return;
    const { name } = request.metadata;
    const condition = decision.kind === "approve"
      ? {
        type: "Approved",
        status: "True",
        reason: "AutoApproved",
        message: `tunnel agent of node ${decision.node}`,
      }
      : {
        type: "Denied",
        status: "True",
        reason: "NotEntitled",
        message: decision.why,
      };
    const conditions = [...request.status?.conditions ?? [], condition];
    // With the version that was read, so that the request that was judged is
    // the one that is approved.
    await this.options.client.replace(
      objectPathOf(CERTIFICATE_SIGNING_REQUESTS, {
        name: name!,
        subresource: "approval",
      }),
      { ...request, status: { ...request.status, conditions } },
      this.#request,
    );
  }

  #wait(name: string, { kind }: CsrDecision): void {
    if (kind !== "wait") return void this.#waiting.delete(name);
    this.#waiting.add(name);
    this.#waitTimer ??= this.options.timers.after(LOOK_AGAIN_MS, () => {
      this.#waitTimer = undefined;
      for (const name of this.#waiting) this.#due.add(name);
      this.#work();
    });
  }

  #report(request: CertificateSigningRequest, decision: CsrDecision): void {
    const { observer } = this.options;
    const { metadata: { name }, spec: { username = "" } } = request;
    const what = `CertificateSigningRequest ${name} of ${
      JSON.stringify(username)
    }`;
    if (decision.kind === "approve") {
      observer.decided("approved");
      observer.event(`approved ${what} for node ${decision.node}`);
    } else if (decision.kind === "wait") {
      observer.decided("waiting");
      if (this.#waiting.has(name!)) return;
      observer.warn(`${what} has to wait: ${decision.why}`, "TUN802");
    } else if (decision.kind === "deny") {
      observer.decided("denied");
      observer.warn(`denied ${what}: ${decision.why}`, "TUN320");
    } else {
      observer.decided("ignored");
      observer.detail(`left ${what} to others: ${decision.why}`);
    }
  }

  get #request(): RequestOptions {
    return { timeoutMs: TIMEOUT_MS, signal: this.#stopping.signal };
  }
}

/** Most requests are, and need no closer look. */
function isDecided({ status }: CertificateSigningRequest): boolean {
  return (status?.conditions ?? []).length > 0;
}
