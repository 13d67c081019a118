/**
 * One kind of resources on one stream: what the client requested there, and the
 * next requests that follow from it. There is one implementation for each mode
 * of xDS v3.
 *
 * It knows neither the content of resources nor the time.
 *
 * @module
 */

import { Tally } from "../../proto/sync/tally.ts";
import type {
  DiscoveryMode,
  DiscoveryNode,
  DiscoveryRequest,
  ErrorDetail,
} from "../../proto/xds/discovery.ts";
import type { AdsKind } from "./held_resources.ts";

export interface AdsSubscription {
  /** Whether anything was ever requested. */
  readonly isBegun: boolean;
  /**
   * Requests that subscribe to new wanted names, and unsubscribe from the rest.
   *
   * @param node In the first request of a stream.
   * @returns None when nothing is new; several when one would be too large.
   */
  ask(node?: DiscoveryNode): readonly DiscoveryRequest[];
  /** Accepts the response of `nonce`, or refuses it. */
  answer(nonce: string, errorDetail?: ErrorDetail): DiscoveryRequest;
}

/**
 * Names of one request, and characters of all of them: less than what servers
 * of ours read at once. State of the world needs all names in one request.
 */
export const PORTION_NAMES_MAX = 5_000;
export const PORTION_LENGTH_MAX = 524_288;

/** All resources there are. */
const WILDCARD = "*";

/** One for a stream that has just begun. */
export function subscription(
  mode: DiscoveryMode,
  kind: AdsKind<unknown>,
): AdsSubscription {
  return mode === "sotw"
    ? new SotwSubscription(kind)
    : new DeltaSubscription(kind);
}

/** Each request has all names; the meaning of an empty list changes. */
class SotwSubscription implements AdsSubscription {
  /** The last request; absent before the first. */
  #requested:
    | { readonly names: ReadonlySet<string>; readonly isWildcard: boolean }
    | undefined;
  /** Once a request had a name, an empty list ends the subscription. */
  #hasNamed = false;
  #nonce = "";

  constructor(private readonly kind: AdsKind<unknown>) {}

  get isBegun(): boolean {
    return this.#requested !== undefined;
  }

  ask(node?: DiscoveryNode): readonly DiscoveryRequest[] {
    const { wanted } = this.kind;
    const { names, isWildcard } = wanted;
    if (this.#requested === undefined && wanted.isEmpty) return [];
    const isRequested = this.#requested?.isWildcard === isWildcard &&
      isSameSet(this.#requested.names, names);
    return isRequested ? [] : [this.#request(undefined, node)];
  }

  answer(nonce: string, errorDetail?: ErrorDetail): DiscoveryRequest {
    this.#nonce = nonce;
    return this.#request(errorDetail);
  }

  #request(
    errorDetail: ErrorDetail | undefined,
    node?: DiscoveryNode,
  ): DiscoveryRequest {
    const { typeUrl, wanted, acceptedVersion } = this.kind;
    const { names, isWildcard } = wanted;
    this.#requested = { names, isWildcard };
    this.#hasNamed ||= names.size > 0;
    return {
      mode: "sotw",
      node,
      typeUrl,
      versionInfo: acceptedVersion,
      resourceNames: isWildcard && this.#hasNamed
        ? [WILDCARD, ...names]
        : [...names],
      responseNonce: this.#nonce,
      errorDetail,
    };
  }
}

/** Requests have the differences. */
class DeltaSubscription implements AdsSubscription {
  /** All that is requested, the wildcard among it; absent before the first. */
  #requested: ReadonlySet<string> | undefined;
  /** What that was made of: equal sets mean that there is nothing new to ask. */
  #names: ReadonlySet<string> | undefined;
  #isWildcard = false;

  constructor(private readonly kind: AdsKind<unknown>) {}

  get isBegun(): boolean {
    return this.#requested !== undefined;
  }

  ask(node?: DiscoveryNode): readonly DiscoveryRequest[] {
    const { wanted } = this.kind;
    const requested = this.#requested;
    if (requested === undefined && wanted.isEmpty) return [];
    const { isWildcard } = wanted;
    // Asked after each response: thousands of names are not compared each time.
    const isRequested = this.#names === wanted.names &&
      this.#isWildcard === isWildcard;
    if (isRequested) return [];
    this.#names = wanted.names;
    this.#isWildcard = isWildcard;
    const names = isWildcard
      ? new Set([WILDCARD, ...wanted.names])
      : wanted.names;
    const subscribe = [...names].filter((name) => !requested?.has(name));
    const unsubscribe = [...requested ?? []].filter((name) => !names.has(name));
    if (subscribe.length === 0 && unsubscribe.length === 0) return [];
    this.#requested = names;
    const isFirst = requested === undefined;
    const initialVersions = isFirst ? this.kind.heldVersions() : NO_VERSIONS;
    // Older servers know the wildcard by the empty list of a first request.
    const isLegacy = isFirst && names.size === 1 && isWildcard;
    const [first = NO_NAMES, ...others] = isLegacy ? [] : portions(subscribe);
    const [gone = NO_NAMES, ...goneToo] = portions(unsubscribe);
    const blank = this.#blank();
    return [
      { ...blank, node, subscribe: first, unsubscribe: gone, initialVersions },
      ...others.map((subscribe) => ({ ...blank, subscribe })),
      ...goneToo.map((unsubscribe) => ({ ...blank, unsubscribe })),
    ];
  }

  answer(nonce: string, errorDetail?: ErrorDetail): DiscoveryRequest {
    return { ...this.#blank(), responseNonce: nonce, errorDetail };
  }

  #blank() {
    return {
      mode: "delta",
      node: undefined,
      typeUrl: this.kind.typeUrl,
      subscribe: NO_NAMES,
      unsubscribe: NO_NAMES,
      initialVersions: NO_VERSIONS,
      responseNonce: "",
      errorDetail: undefined,
    } as const;
  }
}

const NO_NAMES: readonly string[] = Object.freeze([]);
const NO_VERSIONS: ReadonlyMap<string, string> = new Map();

function portions(names: readonly string[]): readonly (readonly string[])[] {
  const found: string[][] = [];
  let length = Infinity;
  for (const name of names) {
    const last = found.at(-1);
    length += name.length;
    if (
      last === undefined || last.length === PORTION_NAMES_MAX ||
      length > PORTION_LENGTH_MAX
    ) {
      found.push([name]);
      length = name.length;
    } else last.push(name);
  }
  return found;
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  if (a === b) return true;
  return a.size === b.size && [...a].every((name) => b.has(name));
}

export class WantedNames {
  #isWildcard = false;
  #named: ReadonlySet<string> = new Set();
  /** How many resources need each name. */
  readonly #needed = new Tally<string>();
  /** In the order in which they were first wanted. */
  #all: Set<string> | undefined;

  get isWildcard(): boolean {
    return this.#isWildcard;
  }

  /** Wanted by name. The same set for as long as its content is the same. */
  get names(): ReadonlySet<string> {
    return this.#all ??= new Set([...this.#named, ...this.#needed.keys()]);
  }

  get isEmpty(): boolean {
    return !this.#isWildcard && this.names.size === 0;
  }

  /** Whether a resource of this name is of interest. */
  has(name: string): boolean {
    return this.#isWildcard || this.names.has(name);
  }

  /** What the client's owner wants from now on. */
  choose(isWildcard: boolean, named: Iterable<string>): void {
    this.#isWildcard = isWildcard;
    this.#named = new Set(named);
    this.#all = undefined;
  }

  need(name: string): void {
    if (this.#needed.add(name) === 1) this.#all = undefined;
  }

  release(name: string): void {
    if (this.#needed.add(name, -1) === 0) this.#all = undefined;
  }
}
