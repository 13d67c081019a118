/**
 * The layouts of keys in etcd, and the last good value of each key. A layout is
 * the seam between the code that knows keys and revisions and the code that
 * knows what the values mean.
 *
 * Neither watches nor followers are known here. Touched services are
 * remembered, so that only those are told again.
 *
 * @module
 */

import { ETCD_KEYS_MAX } from "../../../../neighbours/etcd/client.ts";
import type { Entry } from "../../../../neighbours/etcd/keys.ts";
import type { Endpoint, Service, ServiceEndpoints } from "../../model/model.ts";
import type { CatalogChange } from "../../model/source.ts";
import type { Code } from "../../../../proto/codes/codes.ts";

/** One key's report about endpoints. */
interface EndpointsKey {
  /** The present value; it is parsed again when its service changes. */
  readonly text: string;
  readonly modRevision: bigint;
  /** The last version that could be parsed. */
  readonly endpoints: readonly Endpoint[];
}

type ServiceTable = Map<string, Service>;
/** By service, then by key. */
type EndpointTable = Map<string, Map<string, EndpointsKey>>;

/** Refused keys that are remembered, to be named only once. */
export const REFUSED_MAX = 1_000;

const DECODER = new TextDecoder();

export class EtcdEntries {
  readonly #keysMax: number;
  #services: ServiceTable = new Map();
  #endpoints: EndpointTable = new Map();
  #endpointKeys = 0;
  /** Keys whose value could not be used, and of which revision it was. */
  readonly #refused = new Map<string, bigint>();
  readonly #touched = {
    services: new Set<string>(),
    endpoints: new Set<string>(),
  };

  /**
   * @param onRefused Called once for each value that cannot be used, and why.
   * @param keysMax Keys with endpoints that are kept.
   */
  constructor(
    private readonly layout: EtcdLayout,
    private readonly onRefused: (problem: string) => void,
    keysMax = ETCD_KEYS_MAX,
  ) {
    this.#keysMax = keysMax;
  }

  get services(): readonly Service[] {
    return [...this.#services.values()];
  }

  get endpoints(): readonly ServiceEndpoints[] {
    return [...this.#endpoints.keys()]
      .map((service) => ({ service, endpoints: this.endpointsOf(service)! }));
  }

  /** In the order of their keys; `undefined` when there is no key. */
  endpointsOf(service: string): readonly Endpoint[] | undefined {
    const keys = this.#endpoints.get(service);
    if (keys === undefined) return undefined;
    // By code units: the order is always the same, whichever key came last.
    return [...keys].sort(([a], [b]) => a < b ? -1 : 1)
      .flatMap(([, word]) => word.endpoints);
  }

  /** What was touched since the last call. */
  takeChange(): CatalogChange {
    const now = <T>(keys: Set<string>, find: (key: string) => T) => {
      const found = new Map([...keys].map((key) => [key, find(key)]));
      keys.clear();
      return found;
    };
    const { services, endpoints } = this.#touched;
    return {
      services: now(services, (key) => this.#services.get(key)),
      endpoints: now(endpoints, (key) => this.endpointsOf(key)),
    };
  }

  /**
   * Replaces all keys; a value that cannot be used leaves the earlier one in
   * place.
   */
  replace(entries: readonly Entry[]): void {
    const before = { services: this.#services, endpoints: this.#endpoints };
    this.#services = new Map();
    this.#endpoints = new Map();
    this.#endpointKeys = 0;
    // Services first: they say what their endpoints' ports are.
    for (const kind of ["service", "endpoints"] as const) {
      for (const entry of entries) {
        const place = this.#placeOf(entry);
        if (place?.kind === kind) this.#read(entry, place, before);
      }
    }
    this.takeChange();
  }

  put(entry: Entry): void {
    const place = this.#placeOf(entry);
    if (place === undefined) return;
    const { service } = place;
    this.#read(entry, place, {
      services: this.#services,
      endpoints: this.#endpoints,
    });
    if (place.kind === "service") this.#readEndpointsAgain(service);
  }

  remove(key: string): void {
    this.#refused.delete(key);
    let place: ParsedKey;
    try {
      place = this.layout.placeOf(key);
    } catch (error) {
      // It said nothing while it was there.
      if (!(error instanceof LayoutError)) throw error;
      return;
    }
    const { kind, service } = place;
    if (kind === "service") {
      if (!this.#services.delete(service)) return;
      this.#touched.services.add(service);
      this.#readEndpointsAgain(service);
      return;
    }
    const keys = this.#endpoints.get(service);
    if (!keys?.delete(key)) return;
    this.#endpointKeys--;
    if (keys.size === 0) this.#endpoints.delete(service);
    this.#touched.endpoints.add(service);
  }

  #placeOf(entry: Entry): ParsedKey | undefined {
    try {
      return this.layout.placeOf(entry.key);
    } catch (error) {
      this.#refuse(entry, error);
      return undefined;
    }
  }

  #read(
    entry: Entry,
    place: ParsedKey,
    before: {
      readonly services: ServiceTable;
      readonly endpoints: EndpointTable;
    },
  ): void {
    const { service } = place;
    if (place.kind === "service") {
      const good = this.#readService(entry, place) ??
        before.services.get(service);
      if (good === undefined) return;
      this.#services.set(service, good);
      this.#touched.services.add(service);
      return;
    }
    const last = before.endpoints.get(service)?.get(entry.key);
    const text = DECODER.decode(entry.value);
    const endpoints = this.#readEndpoints(entry, text, service) ??
      last?.endpoints ?? [];
    const { modRevision } = entry;
    this.#setEndpoints(entry, service, { text, endpoints, modRevision });
  }

  #setEndpoints(entry: Entry, service: string, word: EndpointsKey): void {
    let keys = this.#endpoints.get(service);
    if (!keys?.has(entry.key)) {
      if (this.#endpointKeys >= this.#keysMax) {
        const problem = `there are ${this.#keysMax} keys already`;
        return this.#refuse(entry, new LayoutError(problem));
      }
      this.#endpointKeys++;
    }
    if (keys === undefined) this.#endpoints.set(service, keys = new Map());
    keys.set(entry.key, word);
    this.#touched.endpoints.add(service);
  }

  /** The name of a port there depends on the service. */
  #readEndpointsAgain(service: string): void {
    const keys = this.#endpoints.get(service);
    if (keys === undefined) return;
    for (const [key, { text, endpoints, modRevision }] of keys) {
      const entry = { key, modRevision };
      const good = this.#readEndpoints(entry, text, service) ?? endpoints;
      keys.set(key, { text, endpoints: good, modRevision });
    }
    this.#touched.endpoints.add(service);
  }

  #readService(entry: Entry, place: ParsedKey): Service | undefined {
    const { key, value } = entry;
    try {
      const text = DECODER.decode(value);
      const service = this.layout.readService(key, place, text);
      this.#refused.delete(key);
      return service;
    } catch (error) {
      this.#refuse(entry, error);
      return undefined;
    }
  }

  #readEndpoints(
    entry: Pick<Entry, "key" | "modRevision">,
    text: string,
    service: string,
  ): readonly Endpoint[] | undefined {
    const { key } = entry;
    const of = this.#services.get(service);
    const problems: string[] = [];
    try {
      const endpoints = this.layout.readEndpoints(
        key,
        text,
        of,
        (problem) => problems.push(problem),
      );
      if (problems.length === 0) this.#refused.delete(key);
      else this.#refuse(entry, new LayoutError(problems.join("; ")));
      return endpoints;
    } catch (error) {
      this.#refuse(entry, error);
      return undefined;
    }
  }

  /** Says so once for each value. */
  #refuse(
    { key, modRevision }: Pick<Entry, "key" | "modRevision">,
    error: unknown,
  ): void {
    if (!(error instanceof LayoutError)) throw error;
    if (this.#refused.get(key) === modRevision) return;
    if (!this.#refused.has(key) && this.#refused.size >= REFUSED_MAX) return;
    this.#refused.set(key, modRevision);
    this.onRefused(`${key} of etcd: ${error.message}`);
  }
}

/** A key or a value that says nothing; the message is for people. */
export class LayoutError extends Error {
  override readonly name = "LayoutError";
  readonly tunnelCode: Code = "TUN124";
}

/** The subject of a key. */
export interface ParsedKey {
  readonly kind: "service" | "endpoints";
  /** `namespace/name`. */
  readonly service: string;
}

export interface EtcdLayout {
  /** The name of a source with this layout. */
  readonly sourceName: string;
  /** The common prefix of its keys; ends with `/`. */
  readonly prefix: string;
  /** @throws {LayoutError} When the key is none of this layout. */
  placeOf(key: string): ParsedKey;
  /** @throws {LayoutError} */
  readService(key: string, place: ParsedKey, text: string): Service;
  /**
   * @param of The service, when it is known.
   * @param refuse Called for each endpoint that is omitted.
   * @throws {LayoutError}
   */
  readEndpoints(
    key: string,
    text: string,
    of: Service | undefined,
    refuse: (problem: string) => void,
  ): readonly Endpoint[];
}

/**
 * A value as JSON's object.
 *
 * @throws {LayoutError}
 */
export function parseObject(
  text: string,
): Readonly<Record<string, unknown>> {
  // What Kubernetes has written since 1.6.
  if (text.startsWith("k8s\0")) {
    throw new LayoutError(
      "it is Kubernetes' protobuf, wanted JSON; take services from its API " +
        "server",
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's words are about a character; the message must be about the
    // value.
    throw new LayoutError("it is no JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new LayoutError("wanted a JSON object");
  }
  return value as Readonly<Record<string, unknown>>;
}
