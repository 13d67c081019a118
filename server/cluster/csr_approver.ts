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
  KubernetesError,
  unlessMissing,
} from "../../neighbours/kubernetes/errors.ts";
import { ListWatch } from "../../neighbours/kubernetes/list_watch.ts";
import type { CertificateSigningRequest } from "../../neighbours/kubernetes/objects.ts";
import {
  CERTIFICATE_SIGNING_REQUESTS,
  objectPathOf,
} from "../../neighbours/kubernetes/paths.ts";
import {
  type Next,
  type Run,
  supervise,
} from "../../platform/time/supervise.ts";
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
  readonly #stopping = new AbortController();
  /** Names of requests that are to be looked at, in order. */
  readonly #due = new Set<string>();
  /** Names of those that may be good soon. */
  readonly #waiting = new Set<string>();
  #waitTimer: Timer | undefined;
  /** Decides, or leaves the API server alone for a while. */
  #working: Promise<void> | undefined;

  constructor(private readonly options: CsrApproverOptions) {
    const { client, timers, random, observer } = options;
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
    await Promise.all([this.#requests.stop(), this.#working]);
    this.#waitTimer?.cancel();
  }

  #work(): void {
    const { timers, random, observer } = this.options;
    const { signal } = this.#stopping;
    const hasWork = this.#due.size > 0 && !signal.aborted;
    if (this.#working !== undefined || !hasWork) return;
    this.#working = supervise<Error>({
      timers,
      random,
      capMs: APPROVAL_RETRY_CAP_MS,
      signal,
      run: (run) => this.#decideSome(run),
      problemOf: (error) => worldly("task", error, isKubernetesTrouble),
      onProblem: ({ message }, retryMs) =>
        observer.warn(
          `${message}; trying again in ${Math.round(retryMs)} ms`,
          "TUN802",
        ),
    }).finally(() => {
      this.#working = undefined;
      this.#work();
    });
    unawaited("task", this.#working);
  }

  /** Other requests most likely have the same problem as one that failed. */
  async #decideSome(run: Run): Promise<Next> {
    const names = [...this.#due].slice(0, AT_ONCE);
    if (names.length === 0) return "done";
    for (const name of names) this.#due.delete(name);
    const failures = await Promise.all(names.map((one) => this.#attempt(one)));
    // One that always fails must not make the others wait ever longer.
    if (failures.includes(undefined)) run.succeeded();
    const failure = failures.find((one) => one !== undefined);
    if (failure !== undefined) throw failure;
    return "again";
  }

  /** @returns What of the world has prevented it. */
  async #attempt(name: string): Promise<KubernetesError | undefined> {
    try {
      await this.#decide(name);
      return undefined;
    } catch (error) {
      if (this.#stopping.signal.aborted) return undefined;
      const { message } = worldly("task", error, isKubernetesTrouble);
      this.options.observer.decided("failed");
      this.#due.add(name);
      return new KubernetesError(
        0,
        "",
        `cannot decide about CertificateSigningRequest ${name}: ${message}`,
      );
    }
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
