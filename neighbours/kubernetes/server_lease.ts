/**
 * This server's lease: made, renewed while the server lives, and deleted at its
 * end; and the leases of servers that ended without deleting theirs.
 *
 * Nothing here stops a server: without its lease agents count one less, which
 * the log says.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { worldly } from "../../platform/errors/internal_errors.ts";
import type { KubernetesClient, RequestOptions } from "./client.ts";
import {
  type CallReport,
  codeOf,
  isKubernetesTrouble,
  KubernetesError,
  reporting,
} from "./errors.ts";
import {
  formatMicroTime,
  LEASE_SECONDS,
  leaseEndMs,
  leaseName,
  LEASES,
  objectPathOf,
  RENEW_MS,
} from "./paths.ts";
import type { Lease, ObjectList } from "./objects.ts";
import { quoted } from "../../proto/peer/quoted.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** A renewal that takes longer is given up: the next one is due. */
const TIMEOUT_MS = 10_000;

/** How long the end of a server may wait for the end of its lease. */
const DELETE_TIMEOUT_MS = 2_000;

/** Before that, another writer may be this server's successor. */
const ONE_ID_MS = 30_000;

export type LeaseClient = Pick<
  KubernetesClient,
  "get" | "create" | "replace" | "delete"
>;

/**
 * The observed events; the names of the methods are Konnectivity's families.
 */
export interface LeaseObserver {
  readonly listed: CallReport;
  readonly deleted: CallReport;
  culled(): void;
  /** Another process with this server's id has renewed it meanwhile. */
  taken(): void;
  warn(message: string, code: Code): void;
}

/** The lease is not counted. */
export const UNCOUNTED: Omit<LeaseObserver, "warn"> = {
  listed: () => {},
  deleted: () => {},
  culled: () => {},
  taken: () => {},
};

/** What the lease needs from outside. */
export interface ServerLeaseOptions {
  readonly client: LeaseClient;
  readonly serverId: string;
  /** Absent: upstream's name for that id. */
  readonly name?: string;
  readonly namespace: string;
  /** Not empty: agents and the search for expired ones select by them. */
  readonly labels: Readonly<Record<string, string>>;
  /** Read at each renewal. */
  readonly annotations?: () => Readonly<Record<string, string>>;
  readonly timers: Timers;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly observer: LeaseObserver;
}

/** Publishes one server's lease, and renews it. */
export class ServerLease {
  readonly #collection: string;
  readonly #name: string;
  readonly #path: string;
  readonly #stopping = new AbortController();
  /** As it was last written; `undefined`: it must be read first. */
  #lease: Lease | undefined;
  /** Since when another process renews it as well. */
  #takenMs: number | undefined;
  #saidTaken = false;
  #timer: Timer | undefined;
  #round: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #isDue = false;
  #culledMs = -Infinity;
  #stopped: Promise<void> | undefined;

  constructor(private readonly options: ServerLeaseOptions) {
    const { serverId, namespace } = options;
    this.#collection = objectPathOf(LEASES, { namespace });
    this.#name = options.name ?? leaseName(serverId);
    this.#path = objectPathOf(LEASES, { namespace, name: this.#name });
  }

  /** Makes the lease; goes on until `stop`. */
  start(): void {
    this.#round = this.#work();
  }

  /** Its written form has changed. */
  renew(): void {
    if (this.#stopping.signal.aborted) return;
    this.#isDue = true;
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    this.#timer = undefined;
    this.start();
  }

  /** Deletes the lease, once. Settles soon, come what may. */
  stop(): Promise<void> {
    return this.#stopped ??= this.#end();
  }

  async #end(): Promise<void> {
    this.#stopping.abort();
    this.#timer?.cancel();
    await this.#round;
    try {
      const { resourceVersion } = this.#lease?.metadata ?? {};
      await this.#delete(this.#path, {
        timeoutMs: DELETE_TIMEOUT_MS,
        resourceVersion,
      });
    } catch (error) {
      if (!isKubernetesTrouble(error)) throw error;
      // Deleted already, or a successor with this id has written it: it is theirs.
      if ([404, 409].includes(codeOf(error) ?? 0)) return;
      this.options.observer.warn(
        `the server's lease stays until it expires: ${error.message}`,
        "TUN802",
      );
    }
  }

  async #work(): Promise<void> {
    const { timers } = this.options;
    this.#isDue = false;
    await this.#attempt("renew the server's lease", () => this.#renew());
    if (timers.now() - this.#culledMs >= RENEW_MS) {
      this.#culledMs = timers.now();
      await this.#attempt("remove expired leases", () => this.#cull());
    }
    if (this.#stopping.signal.aborted) return;
    if (this.#isDue) return await this.#work();
    this.#timer = timers.after(RENEW_MS, () => {
      this.#timer = undefined;
      this.start();
    });
  }

  async #attempt(what: string, action: () => Promise<void>): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    try {
      await action();
      this.#hasFailed = false;
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      const { message } = worldly("task", error, isKubernetesTrouble);
      // Once for a row of failures: the next one is due in 15 s.
      if (!this.#hasFailed) {
        this.options.observer.warn(`cannot ${what}: ${message}`, "TUN802");
      }
      this.#hasFailed = true;
    }
  }

  // --- Our own -------------------------------------------------------------------

  async #renew(): Promise<void> {
    const { client } = this.options;
    const written = this.#lease?.spec?.renewTime;
    try {
      this.#lease = this.#lease === undefined
        ? await client.create(this.#collection, this.#fresh(), this.#request)
        : await client.replace(
          this.#path,
          this.#fresh(this.#lease),
          this.#request,
        );
      this.#takenMs = undefined;
      this.#saidTaken = false;
    } catch (error) {
      this.#lease = undefined;
      if (!(error instanceof KubernetesError)) throw error;
      // A leftover of an earlier run, or changed or deleted by another program.
      if (error.code === 404) return await this.#renew();
      if (error.code !== 409) throw error;
      const found = await client.get<Lease>(this.#path, this.#request);
      const isTaken = written !== undefined &&
        found.spec?.renewTime !== written;
      if (isTaken) this.#noteTaken();
      this.#lease = await client.replace(
        this.#path,
        this.#fresh(found),
        this.#request,
      );
    }
  }

  /** Both of them notice: each finds what the other one has written. */
  #noteTaken(): void {
    const { timers, serverId, observer } = this.options;
    observer.taken();
    this.#takenMs ??= timers.now();
    if (this.#saidTaken || timers.now() - this.#takenMs < ONE_ID_MS) return;
    this.#saidTaken = true;
    observer.warn(
      `another process has this server's id ${quoted(serverId)} and renews ` +
        "the same lease: agents take the two for one, and link to only one of " +
        "them; give each its own --server-id",
      "TUN313",
    );
  }

  #fresh(old?: Lease): Lease {
    const { serverId, namespace, labels, wallClock } = this.options;
    const annotations = this.options.annotations?.();
    return {
      apiVersion: LEASES.apiVersion,
      kind: "Lease",
      metadata: {
        ...old?.metadata,
        name: this.#name,
        namespace,
        labels: { ...old?.metadata.labels, ...labels },
        ...(annotations === undefined
          ? {}
          : { annotations: { ...old?.metadata.annotations, ...annotations } }),
      },
      spec: {
        ...old?.spec,
        holderIdentity: serverId,
        leaseDurationSeconds: LEASE_SECONDS,
        renewTime: formatMicroTime(wallClock()),
      },
    };
  }

  get #request(): RequestOptions {
    return { timeoutMs: TIMEOUT_MS, signal: this.#stopping.signal };
  }

  // --- Leases of servers that are gone
  // ---------------------------------------------

  async #cull(): Promise<void> {
    const { client, labels, timers, wallClock, observer } = this.options;
    const labelSelector = Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`).join(",");
    const listing = client.get<ObjectList<Lease>>(this.#collection, {
      ...this.#request,
      query: { labelSelector },
    });
    const { items } = await reporting(timers, observer.listed, listing);
    for (const lease of items ?? []) {
      const { name, resourceVersion } = lease.metadata;
      const endMs = leaseEndMs(lease);
      if (endMs !== undefined && endMs > wallClock()) continue;
      if (name === undefined || resourceVersion === undefined) continue;
      const { namespace } = this.options;
      const path = objectPathOf(LEASES, { namespace, name });
      try {
        await this.#delete(path, { ...this.#request, resourceVersion });
        observer.culled();
      } catch (error) {
        // Renewed meanwhile, or removed by another server: both are fine.
        if (![404, 409].includes(codeOf(error) ?? 0)) throw error;
      }
    }
  }

  #delete(
    path: string,
    options: RequestOptions & { readonly resourceVersion?: string | undefined },
  ): Promise<void> {
    const { client, timers, observer } = this.options;
    const deleting = client.delete(path, options);
    return reporting(timers, observer.deleted, deleting);
  }
}
