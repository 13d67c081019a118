/**
 * A client of discovery as the protocol wants it, for property tests: what it
 * has, what it asks for and what it answers, in SotW and in Delta.
 *
 * Two characters. `envoy` asks for all clusters and listeners, then for the
 * endpoints and routes that they lead to; it repeats its request for endpoints
 * when a cluster changed, and may keep its answer about clusters until it has
 * them. `grpc` asks for names. Either refuses content that ends in `!`.
 *
 * @module
 */

import type {
  DeltaRequest,
  DiscoveryMode,
  DiscoveryRequest,
} from "../../../proto/xds/discovery.ts";
import {
  isWholeState,
  type Resource,
  RESOURCE_KINDS,
  type ResourceKind,
  TYPE_URLS,
} from "../../../proto/xds/resource.ts";
import type { OutgoingResponse } from "../../../services/discovery/subscriptions/xds_stream_state.ts";

/** An Envoy gives up waiting for endpoints after that. */
export const WARMING_MS = 15_000;

export interface ModelCharacter {
  readonly mode: DiscoveryMode;
  readonly kind: "envoy" | "grpc";
  /** Whether a refusal says which resource is bad. */
  readonly namesBad: boolean;
  /** Whether it applies what is good of a response that it refuses. */
  readonly appliesGood: boolean;
  /** Envoy: whether its answer about clusters waits for endpoints. */
  readonly keepsAnswer: boolean;
  /** Whether listeners and routes say that they lead to clusters. */
  readonly isLed: boolean;
}

/** One kind. */
class ModelKind {
  isWildcard = false;
  names = new Set<string>();
  has = new Map<string, string>();
  /** Names of which a refused response may have left the client without. */
  readonly tainted = new Set<string>();
  /** `name=version` in responses that it refused without saying which is bad. */
  readonly blamed = new Set<string>();
  nonce = "";
  version = "";

  covers(name: string): boolean {
    return this.isWildcard || this.names.has(name);
  }
}

/** See the module description. */
export class DiscoveryModel {
  readonly kinds: Readonly<Record<ResourceKind, ModelKind>> = {
    cluster: new ModelKind(),
    endpoints: new ModelKind(),
    listener: new ModelKind(),
    route: new ModelKind(),
    service: new ModelKind(),
  };
  /** Clusters that are new or changed, and wait for endpoints. */
  readonly warming = new Set<string>();
  #kept: { nonce: string; sinceMs: number } | undefined;
  /** Asked on this stream. */
  readonly #asked = new Set<ResourceKind>();

  constructor(
    readonly character: ModelCharacter,
    private readonly send: (request: DiscoveryRequest) => void,
    private readonly onClusterGone: (name: string) => void,
  ) {
    if (character.kind !== "envoy") return;
    this.kinds.cluster.isWildcard = true;
    this.kinds.listener.isWildcard = true;
  }

  /** A new stream, after the old one if there was one. */
  connect(): void {
    this.#kept = undefined;
    this.#asked.clear();
    for (const kind of RESOURCE_KINDS) {
      const { nonce, isWildcard, names } = this.kinds[kind];
      this.kinds[kind].nonce = "";
      if (isWildcard || nonce !== "" || names.size > 0) this.#askFirst(kind);
    }
  }

  /** gRPC: asks for exactly these from now on. */
  want(kind: ResourceKind, names: ReadonlySet<string>): void {
    const mine = this.kinds[kind];
    const before = mine.names;
    const more = [...names].filter((name) => !before.has(name));
    const less = [...before].filter((name) => !names.has(name));
    if (more.length === 0 && less.length === 0) return;
    mine.names = new Set(names);
    for (const name of less) {
      mine.has.delete(name);
      mine.tainted.delete(name);
      if (kind === "endpoints") this.warming.delete(name);
    }
    if (!this.#asked.has(kind)) return this.#askFirst(kind);
    this.send(this.#request(kind, { more, less }));
  }

  /** Time has passed. */
  tick(nowMs: number): void {
    const kept = this.#kept;
    if (kept === undefined) return;
    const isOver = this.warming.size === 0 ||
      nowMs >= kept.sinceMs + WARMING_MS;
    if (!isOver) return;
    this.#kept = undefined;
    this.send(this.#request("cluster", { nonce: kept.nonce }));
  }

  take({ kind, body, nonce }: OutgoingResponse, nowMs: number): void {
    const mine = this.kinds[kind];
    const bad = body.resources.filter(({ version }) => version.endsWith("!"));
    const isTaken = bad.length === 0;
    const changed = this.#apply(kind, body.resources, body.removed, isTaken);
    if (this.character.mode === "sotw") mine.nonce = nonce;
    if (mine.nonce === "") mine.nonce = nonce;
    if (!isTaken) {
      const names = this.character.namesBad ? bad : [];
      const message = ["refused", ...names.map(({ name }) => name)].join(" ");
      this.send(this.#request(kind, { nonce, message }));
    } else {
      mine.version = body.version;
      const keeps = kind === "cluster" && this.character.keepsAnswer &&
        this.#isWarming(changed);
      if (keeps) this.#kept = { nonce, sinceMs: nowMs };
      else this.send(this.#request(kind, { nonce }));
    }
    if (this.character.kind === "envoy") this.#follow(kind, changed);
    this.tick(nowMs);
  }

  #isWarming(changed: readonly string[]): boolean {
    return this.character.kind === "envoy" &&
      changed.some((name) => this.kinds.cluster.has.has(name));
  }

  /** @returns Names whose content is another one now, or that are gone. */
  #apply(
    kind: ResourceKind,
    resources: readonly Resource[],
    removed: readonly string[],
    isTaken: boolean,
  ): readonly string[] {
    const mine = this.kinds[kind];
    const before = new Map(mine.has);
    const isWhole = this.character.mode === "sotw" && isWholeState(kind);
    const applies = isTaken || this.character.appliesGood;
    if (applies && isWhole) {
      const names = new Set(resources.map(({ name }) => name));
      for (const name of mine.has.keys()) {
        if (!names.has(name)) this.#drop(kind, name);
      }
    }
    // Removals are applied whatever becomes of the rest.
    for (const name of removed) this.#drop(kind, name);
    for (const { name, version } of resources) {
      if (!mine.covers(name)) continue;
      if (!isTaken && !this.character.namesBad) {
        mine.blamed.add(`${name}=${version}`);
      }
      if (!applies || version.endsWith("!")) mine.tainted.add(name);
      else {
        mine.has.set(name, version);
        mine.tainted.delete(name);
      }
      if (kind === "endpoints" && applies && !version.endsWith("!")) {
        this.warming.delete(name);
      }
    }
    if (!applies && isWhole) {
      for (const name of before.keys()) mine.tainted.add(name);
    }
    return [...new Set([...before.keys(), ...mine.has.keys()])]
      .filter((name) => before.get(name) !== mine.has.get(name));
  }

  #drop(kind: ResourceKind, name: string): void {
    const mine = this.kinds[kind];
    mine.tainted.delete(name);
    if (!mine.has.delete(name)) return;
    if (kind === "cluster" && mine.covers(name)) this.onClusterGone(name);
  }

  /** Asks for what clusters and listeners lead to. */
  #follow(kind: ResourceKind, changed: readonly string[]): void {
    if (kind === "cluster") {
      const { has } = this.kinds.cluster;
      const { names } = this.kinds.endpoints;
      const again = changed.filter((name) => has.has(name) && names.has(name));
      for (const name of changed) {
        if (has.has(name)) this.warming.add(name);
        else this.warming.delete(name);
      }
      const size = names.size;
      this.want("endpoints", new Set(has.keys()));
      const isSame = this.kinds.endpoints.names.size === size;
      if (again.length > 0 && isSame && this.character.mode === "sotw") {
        this.send(this.#request("endpoints", {}));
      }
    }
    if (kind === "listener") {
      this.want("route", new Set(this.kinds.listener.has.keys()));
    }
  }

  #askFirst(kind: ResourceKind): void {
    this.#asked.add(kind);
    const { isWildcard, names, has } = this.kinds[kind];
    if (this.character.mode === "sotw") {
      this.send(this.#request(kind, {}));
      return;
    }
    const request = this.#request(kind, { more: isWildcard ? [] : [...names] });
    this.send({ ...request, initialVersions: new Map(has) } as DeltaRequest);
  }

  #request(
    kind: ResourceKind,
    { nonce, message, more = [], less = [] }: {
      nonce?: string;
      message?: string;
      more?: readonly string[];
      less?: readonly string[];
    },
  ): DiscoveryRequest {
    const mine = this.kinds[kind];
    const every = {
      node: undefined,
      typeUrl: TYPE_URLS[kind],
      errorDetail: message === undefined ? undefined : { code: 3, message },
    };
    return this.character.mode === "sotw"
      ? {
        ...every,
        mode: "sotw",
        versionInfo: mine.version,
        resourceNames: mine.isWildcard ? [] : [...mine.names],
        responseNonce: nonce ?? mine.nonce,
      }
      : {
        ...every,
        mode: "delta",
        subscribe: more,
        unsubscribe: less,
        initialVersions: new Map(),
        responseNonce: nonce ?? "",
      };
  }
}
