/**
 * Records in Kubernetes: a Secret each, labelled by its folder and named by a
 * hash, because keys may have characters that names must not have. An
 * annotation has the record's key.
 *
 * The API has no change of several objects at once. Each write is made only if
 * its object is still the one that was read, in the order of the calls; on a
 * conflict the whole change is attempted again, and must accept its own first
 * writes. Records that were read and not written are checked again before the
 * first write.
 *
 * @module
 */

import type { KubernetesClient } from "../kubernetes/client.ts";
import {
  codeOf,
  isKubernetesTrouble,
  KubernetesError,
  unlessMissing,
} from "../kubernetes/errors.ts";
import { listPages, ListWatch } from "../kubernetes/list_watch.ts";
import type { KubernetesObject } from "../kubernetes/objects.ts";
import { type ApiCollection, objectPathOf } from "../kubernetes/paths.ts";
import { sha256Hex } from "../../platform/pki/key_pair.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  type CommitOutcome,
  NO_VERSION,
  type Place,
  type PlaceEvents,
  type RecordChange,
  splitKey,
  type VersionedRecord,
} from "./transaction.ts";
import { FOLLOWED_FOLDERS } from "./store.ts";
import { inWords, StoreAwayError, StoreError } from "./store_error.ts";

const SECRETS: ApiCollection = { apiVersion: "v1", plural: "secrets" };

/** Says which folder a Secret's record is in. */
const FOLDER_LABEL = "tunnel/state-folder";

/** Says which record a Secret is. */
const RECORD_ANNOTATION = "tunnel/state-record";

/** A Secret's data has 1 MiB at most. */
const RECORD_BYTES_MAX = 900_000;

/** Time limit for one request: a change has several. */
const REQUEST_TIMEOUT_MS = 5_000;

/**
 * Longest wait after failures: a node revoked meanwhile stays linked as long.
 */
const RETRY_CAP_MS = 2_000;

/**
 * How often the API server is asked for a sign of life. A watch may be silent
 * for a minute, and a connection that was cut silently stays so.
 */
export const PROBE_MS = 10_000;

/** The used part of a `v1 Secret`. */
interface Secret extends KubernetesObject {
  readonly type?: string;
  /** Base64. */
  readonly data?: { readonly record?: string };
}

/** What it needs. */
export interface KubernetesPlaceOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  /** The API server's name in sentences. */
  readonly name: string;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** See the module description. */
export class KubernetesPlace implements Place {
  readonly noun = "the state in Kubernetes";
  readonly recordBytesMax = RECORD_BYTES_MAX;
  #listWatch: ListWatch<Secret> | undefined;
  #probe: Timer | undefined;
  #isStopped = false;

  constructor(private readonly options: KubernetesPlaceOptions) {}

  get name(): string {
    return this.options.name;
  }

  where(key: string): string {
    return `${key} (Secret ${this.options.namespace}/${secretName(key)})`;
  }

  async get(key: string): Promise<VersionedRecord | undefined> {
    const { client } = this.options;
    const asking = client.get<Secret>(this.#path(key), REQUEST);
    const secret = await inWords(worded, unlessMissing(asking));
    return secret && this.#recordOf(secret, key);
  }

  async list(
    folder: string,
    prefix: string,
  ): Promise<ReadonlyMap<string, VersionedRecord>> {
    const query = { labelSelector: `${FOLDER_LABEL}=${folder}` };
    const options = { ...REQUEST, query };
    const { client } = this.options;
    const { items } = await inWords(
      worded,
      listPages<Secret>(client, this.#path(), options),
    );
    const found = new Map<string, VersionedRecord>();
    for (const secret of items) {
      const key = keyOf(secret);
      if (!key?.startsWith(`${folder}/${prefix}`)) continue;
      found.set(splitKey(key)[1], this.#recordOf(secret, key));
    }
    return found;
  }

  async commit(
    writes: readonly RecordChange[],
    guards: readonly Pick<RecordChange, "key" | "version">[],
  ): Promise<CommitOutcome> {
    for (const { key, version } of guards) {
      const now = (await this.get(key))?.version ?? NO_VERSION;
      if (now !== version) return { kind: "conflict" };
    }
    const versions: string[] = [];
    for (const write of writes) {
      const version = await this.#write(write);
      if (version === undefined) return { kind: "conflict" };
      versions.push(version);
    }
    return { kind: "done", versions };
  }

  follow(events: PlaceEvents): void {
    this.#startWatch(events);
    this.#probeSoon(events);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#probe?.cancel();
    await this.#listWatch?.stop();
  }

  #startWatch(events: PlaceEvents): void {
    const { client, timers, random } = this.options;
    const listWatch = new ListWatch<Secret>({
      ...{ client, timers, random, retryCapMs: RETRY_CAP_MS },
      path: this.#path(),
      query: {
        labelSelector: `${FOLDER_LABEL} in (${FOLLOWED_FOLDERS.join(",")})`,
      },
      onChanges: (changes) => {
        if (!listWatch.isSynced) return;
        const news = changes.flatMap(({ type, object }) =>
          this.#changeOf(object, type === "removed")
        );
        if (news.length > 0) events.changed(news);
      },
      onSynced: () => {
        const records = [...listWatch.objects.values()]
          .flatMap((secret) => this.#changeOf(secret, false));
        for (const folder of FOLLOWED_FOLDERS) {
          const its = records.filter(({ key }) => splitKey(key)[0] === folder);
          events.listed(folder, its);
        }
      },
      onFollowing: () => events.following(),
      onProblem: (error) => {
        const isLasting = [401, 403, 404].includes(codeOf(error) ?? 0);
        events.problem(error.message, isLasting);
      },
    });
    this.#listWatch = listWatch;
    listWatch.start();
  }

  #probeSoon(events: PlaceEvents): void {
    if (this.#isStopped) return;
    this.#probe = this.options.timers.after(PROBE_MS, () =>
      unawaited(
        "task",
        this.#lookWhetherItAnswers(events).finally(() =>
          this.#probeSoon(events)
        ),
      ));
  }

  /**
   * A watch that seems to work is started again when the API server does not
   * answer.
   */
  async #lookWhetherItAnswers(events: PlaceEvents): Promise<void> {
    if (this.#listWatch?.isStale !== false) return;
    const { client } = this.options;
    const labelSelector = `${FOLDER_LABEL}=format`;
    const query = { labelSelector, limit: "1" };
    try {
      await client.get(this.#path(), {
        ...REQUEST,
        query,
        isRepeatable: false,
      });
    } catch (error) {
      if (!isKubernetesTrouble(error)) throw error;
      if (this.#isStopped || codeOf(error) !== 0) return;
      events.problem(error.message, false);
      await this.#listWatch.stop();
      if (!this.#isStopped) this.#startWatch(events);
    }
  }

  /** @returns The new version; `undefined` when others were faster. */
  async #write(write: RecordChange): Promise<string | undefined> {
    const { key, text, version } = write;
    const { client } = this.options;
    try {
      if (text === undefined) {
        const resourceVersion = version;
        await client.delete(this.#path(key), { ...REQUEST, resourceVersion });
        return version;
      }
      const secret = this.#secretOf(key, text, version);
      const { metadata } = version === NO_VERSION
        ? await client.create(this.#path(), secret, REQUEST)
        : await client.replace(this.#path(key), secret, REQUEST);
      return metadata.resourceVersion ?? NO_VERSION;
    } catch (error) {
      const code = codeOf(error);
      if (code === 409 || code === 404) {
        if (isMissingNamespace(error)) throw worded(error);
        return undefined;
      }
      const isOpen = code === 0 || (code ?? 400) >= 500;
      if (!isOpen) throw worded(error);
      return await this.#settle(write, error);
    }
  }

  /**
   * The answer is lost. What is there now says whether it was done.
   *
   * @throws {StoreAwayError} When it was not, or that cannot be seen.
   */
  async #settle(
    { key, text, version }: RecordChange,
    error: unknown,
  ): Promise<string | undefined> {
    const now = await this.get(key).catch((failure) => {
      if (!(failure instanceof StoreAwayError)) throw failure;
      const { message } = failure;
      throw new StoreAwayError(message, { cause: error, isOpen: true });
    });
    if (now?.text === text) return now?.version ?? version;
    if ((now?.version ?? NO_VERSION) === version) throw worded(error);
    return undefined;
  }

  #secretOf(key: string, text: string, version: string): Secret {
    const { namespace } = this.options;
    return {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        name: secretName(key),
        namespace,
        labels: { [FOLDER_LABEL]: splitKey(key)[0] },
        annotations: { [RECORD_ANNOTATION]: key },
        ...(version === NO_VERSION ? {} : { resourceVersion: version }),
      },
      type: "Opaque",
      data: { record: new TextEncoder().encode(text).toBase64() },
    };
  }

  /** @throws {StoreError} When it is another record, or none. */
  #recordOf(secret: Secret, key: string): VersionedRecord {
    const text = textOf(secret);
    if (keyOf(secret) !== key || text === undefined) {
      throw new StoreError(
        `Cannot use ${
          this.where(key)
        }: it is not what a tunnel server wrote; ` +
          "look who changed it, and delete it or restore it from a backup",
      );
    }
    return { text, version: secret.metadata.resourceVersion ?? NO_VERSION };
  }

  /**
   * Foreign objects are ignored here: they are checked again when they are
   * read.
   */
  #changeOf(secret: Secret, isGone: boolean): RecordChange[] {
    const key = keyOf(secret);
    if (key === undefined || secretName(key) !== secret.metadata.name) {
      return [];
    }
    const version = secret.metadata.resourceVersion ?? NO_VERSION;
    // A text that cannot be read is a damaged record, not a missing one.
    const text = isGone ? undefined : textOf(secret) ?? "";
    return [{ key, text, version }];
  }

  #path(key?: string): string {
    const { namespace } = this.options;
    const name = key === undefined ? {} : { name: secretName(key) };
    return objectPathOf(SECRETS, { namespace, ...name });
  }
}

const REQUEST = { timeoutMs: REQUEST_TIMEOUT_MS } as const;

/** The name of the Secret that contains a record. */
function secretName(key: string): string {
  const hash = sha256Hex(new TextEncoder().encode(key)).slice(0, 32);
  return `tunnel-state-${splitKey(key)[0]}-${hash}`;
}

function keyOf({ metadata }: Secret): string | undefined {
  return metadata.annotations?.[RECORD_ANNOTATION];
}

function textOf({ data }: Secret): string | undefined {
  const text = data?.record;
  if (text === undefined) return undefined;
  try {
    return new TextDecoder().decode(Uint8Array.fromBase64(text));
  } catch {
    return undefined;
  }
}

/** No other client creates it during our attempt. */
function isMissingNamespace(error: unknown): boolean {
  return error instanceof KubernetesError && error.code === 404 &&
    /namespaces? "[^"]*" not found/.test(error.message);
}

/** @returns What to throw. */
export function worded(error: unknown): unknown {
  if (!isKubernetesTrouble(error)) return error;
  const { message } = error;
  const code = codeOf(error);
  const isAway = code === 0 || code === 429 || (code ?? 0) >= 500;
  return isAway
    ? new StoreAwayError(message, { cause: error })
    : new StoreError(message, undefined, { cause: error });
}
