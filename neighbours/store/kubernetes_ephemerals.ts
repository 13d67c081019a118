/**
 * Ephemeral texts at a Kubernetes API server: annotations of Leases, so that
 * nothing but Leases is needed. The first text of a server is on the Lease that
 * upstream's servers have, with its name and labels, so that Konnectivity's agents
 * can count it. All others, and those of other topics, are on Leases that have
 * none of upstream's labels.
 *
 * @module
 */

import { readInstanceId } from "../../proto/peer/peer_identity.ts";
import type { RequestOptions } from "../kubernetes/client.ts";
import { codeOf, unlessMissing } from "../kubernetes/errors.ts";
import { leaseEndMs, LEASES, objectPathOf } from "../kubernetes/paths.ts";
import { ListWatch, type ListWatchClient } from "../kubernetes/list_watch.ts";
import type { ObjectChange } from "../kubernetes/object_copy.ts";
import type { Lease } from "../kubernetes/objects.ts";
import {
  type LeaseClient,
  type LeaseObserver,
  ServerLease,
  UNCOUNTED,
} from "../kubernetes/server_lease.ts";
import {
  type EphemeralOptions,
  type EphemeralPlace,
  MEMBER_PART,
  PART_NAME,
  type PlaceSights,
  type Sight,
} from "./ephemerals.ts";
import { worded } from "./kubernetes_place.ts";
import { inWords } from "./store_error.ts";

/** Label of Leases of servers' agents: the instance. */
const INSTANCE_LABEL = "server.tunnel/instance";

/** The text. */
const TEXT_ANNOTATION = "server.tunnel/text";

/** Time limit for one request. */
const TIMEOUT_MS = 5_000;

/** What it needs from outside. */
export interface KubernetesEphemeralsOptions extends EphemeralOptions {
  readonly client: ListWatchClient & LeaseClient;
  readonly namespace: string;
  readonly topic: "peers" | "offers";
  /**
   * Labels of servers' Leases, by which upstream's agents select them; for
   * `peers`.
   */
  readonly labels: Readonly<Record<string, string>>;
  readonly serverId: string;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  /** Counts the Leases that upstream knows. */
  readonly observer?: Omit<LeaseObserver, "warn">;
}

/** See the module description. */
export class KubernetesEphemerals implements EphemeralPlace {
  readonly isLeased = false;
  readonly isReady = true;
  /** Label of all Leases that are read; its value is the part. */
  readonly #partLabel: string;
  /** Name prefix of Leases that are not upstream's. */
  readonly #prefix: string;
  readonly #lease: ServerLease;
  /** All but the first, as they were written. */
  readonly #written = new Map<string, Lease>();
  readonly #stopping = new AbortController();
  #sights: PlaceSights | undefined;
  #watch: ListWatch<Lease> | undefined;
  #member: string | undefined;

  constructor(private readonly options: KubernetesEphemeralsOptions) {
    const { topic, labels, serverId, observer = UNCOUNTED } = options;
    const isUpstreams = topic === "peers";
    this.#partLabel = isUpstreams
      ? "server.tunnel/part"
      : `server.tunnel/${topic}-part`;
    this.#prefix = isUpstreams ? "tunnel-" : `tunnel-${topic}-`;
    this.#lease = new ServerLease({
      ...options,
      ...(isUpstreams ? {} : { name: `${this.#prefix}${serverId}` }),
      labels: {
        ...(isUpstreams ? labels : {}),
        [this.#partLabel]: MEMBER_PART,
      },
      annotations: () => ({ [TEXT_ANNOTATION]: this.#member ?? "" }),
      observer: {
        ...observer,
        warn: (message) => this.#sights?.state("held", message),
      },
    });
  }

  follow(sights: PlaceSights): void {
    const { client, namespace, timers, random } = this.options;
    this.#sights = sights;
    this.#watch = new ListWatch<Lease>({
      ...{ client, timers, random },
      path: objectPathOf(LEASES, { namespace }),
      query: { labelSelector: this.#partLabel },
      onChanges: (changes) => this.#changed(changes),
      onFollowing: () => sights.state("followed"),
      onProblem: ({ message }) =>
        sights.state("followed", `Cannot follow servers' leases: ${message}`),
    });
    this.#watch.start();
  }

  async write(part: string, text: string | undefined): Promise<void> {
    if (part !== MEMBER_PART) return await this.#writeLease(part, text);
    if (text === undefined) return await this.#lease.stop();
    const isFirst = this.#member === undefined;
    this.#member = text;
    if (isFirst) this.#lease.start();
    else this.#lease.renew();
  }

  async remove(instanceId: string, part: string): Promise<void> {
    // Servers remove the Leases of others that died, as upstream does.
    if (part === MEMBER_PART) return;
    const { namespace } = this.options;
    await this.#delete(
      objectPathOf(LEASES, {
        namespace,
        name: this.#leaseName(part, instanceId),
      }),
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const { instanceId } = this.options;
    await Promise.all([
      this.#watch?.stop(),
      this.#member === undefined ? undefined : this.#lease.stop(),
      ...[...this.#written.keys()].map((part) => this.remove(instanceId, part)),
    ]);
  }

  // --- What this server says ---------------------------------------------------

  async #writeLease(part: string, text: string | undefined): Promise<void> {
    const { client, namespace, instanceId } = this.options;
    const old = this.#written.get(part);
    this.#written.delete(part);
    const name = this.#leaseName(part, instanceId);
    const path = objectPathOf(LEASES, { namespace, name });
    if (text === undefined) return await this.#delete(path);
    const lease = this.#leaseOf(part, text, old);
    const request: RequestOptions = {
      timeoutMs: TIMEOUT_MS,
      signal: this.#stopping.signal,
    };
    try {
      const collection = objectPathOf(LEASES, { namespace });
      const written = old === undefined
        ? await client.create(collection, lease, request)
        : await client.replace(path, lease, request);
      this.#written.set(part, written);
    } catch (error) {
      // Another program has removed or changed it: it is written again.
      const code = codeOf(error);
      if (code !== 409 && code !== 404) throw worded(error);
      const asking = client.get<Lease>(path, request);
      const found = await inWords(worded, unlessMissing(asking));
      if (found !== undefined) this.#written.set(part, found);
      this.#sights!.rewrite(part);
    }
  }

  #leaseOf(part: string, text: string, old: Lease | undefined): Lease {
    const { namespace, instanceId, serverId } = this.options;
    return {
      apiVersion: LEASES.apiVersion,
      kind: "Lease",
      metadata: {
        ...old?.metadata,
        name: this.#leaseName(part, instanceId),
        namespace,
        labels: { [this.#partLabel]: part, [INSTANCE_LABEL]: instanceId },
        annotations: { [TEXT_ANNOTATION]: text },
      },
      spec: { holderIdentity: serverId },
    };
  }

  #leaseName(part: string, instanceId: string): string {
    const id = instanceId.toLowerCase().replaceAll("_", "-");
    return `${this.#prefix}${part}-${id}`;
  }

  async #delete(path: string): Promise<void> {
    const deleting = this.options.client.delete(path, {
      timeoutMs: TIMEOUT_MS,
    });
    await inWords(worded, unlessMissing(deleting));
  }

  // --- What all say ------------------------------------------------------------

  #changed(changes: readonly ObjectChange<Lease>[]): void {
    const { instanceId: own, wallClock } = this.options;
    const sights = changes.flatMap(({ type, object }): Sight[] => {
      const sight = this.#sightOf(object);
      if (sight === undefined) return [];
      if (type === "removed") {
        if (sight.instanceId === own) this.#written.delete(sight.part);
        return [{ ...sight, text: undefined }];
      }
      const isHeld = sight.instanceId === own && sight.part === MEMBER_PART;
      if (isHeld) this.#sights!.state("held");
      return [{ ...sight, isOld: (leaseEndMs(object) ?? 0) < wallClock() }];
    });
    if (sights.length > 0) this.#sights!.changed(sights);
  }

  /** The owner of a Lease's text; none when it is not ours. */
  #sightOf({ metadata }: Lease): Sight | undefined {
    const labels = new Map(Object.entries(metadata.labels ?? {}));
    const part = labels.get(this.#partLabel) ?? "";
    const text = metadata.annotations?.[TEXT_ANNOTATION];
    if (text === undefined || !PART_NAME.test(part)) return undefined;
    const said = part === MEMBER_PART
      ? instanceIn(text)
      : labels.get(INSTANCE_LABEL);
    const instanceId = readInstanceId(said);
    const version = metadata.resourceVersion ?? "";
    if (instanceId === undefined) return undefined;
    return { instanceId, part, text, version };
  }
}

/** A server's Lease has upstream's labels, so its text says whose it is. */
function instanceIn(text: string): string | undefined {
  try {
    const { instanceId } = Object(JSON.parse(text));
    return typeof instanceId === "string" ? instanceId : undefined;
  } catch {
    return undefined;
  }
}
