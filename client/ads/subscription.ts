/**
 * One kind of resources on one stream: what was asked for there, and so what is
 * to be said next. Two ways of saying it, one for each mode of xDS v3.
 *
 * Knows nothing of what resources say, nor of time.
 *
 * @module
 */

import type {
  DiscoveryMode,
  DiscoveryNode,
  DiscoveryRequest,
  ErrorDetail,
} from "../../proto/xds/discovery.ts";
import type { WantedNames } from "./wanted_names.ts";

/** What a subscription needs to know of its kind. */
export interface SubscribedKind {
  readonly typeUrl: string;
  readonly wanted: WantedNames;
  /** Of the last response that was accepted, on whatever stream (SotW). */
  readonly acceptedVersion: string;
  /** Versions of what is held, by name, for a server to compare (Delta). */
  heldVersions(): ReadonlyMap<string, string>;
}

/** See the module description. */
export interface AdsSubscription {
  /** Whether anything was ever asked for. */
  readonly isBegun: boolean;
  /**
   * Asks for what is wanted and was not asked for, and takes back the rest.
   *
   * @param node In the first request of a stream.
   * @returns Nothing when nothing is new; several when it is too much for one.
   */
  ask(node?: DiscoveryNode): readonly DiscoveryRequest[];
  /** Accepts the response of `nonce`, or refuses it. */
  answer(nonce: string, errorDetail?: ErrorDetail): DiscoveryRequest;
}

/**
 * Names of one request, and characters of all of them: less than what servers
 * of ours read at once. State of the world has to say all names in one.
 */
export const PORTION_NAMES_MAX = 5_000;
export const PORTION_LENGTH_MAX = 524_288;

/** All resources there are. */
const WILDCARD = "*";

/** One for a stream that has just begun. */
export function subscription(
  mode: DiscoveryMode,
  kind: SubscribedKind,
): AdsSubscription {
  return mode === "sotw"
    ? new SotwSubscription(kind)
    : new DeltaSubscription(kind);
}

/** Each request says all names; an empty list says something else each time. */
class SotwSubscription implements AdsSubscription {
  readonly #kind: SubscribedKind;
  /** What was said last; absent: nothing. */
  #said:
    | { readonly names: ReadonlySet<string>; readonly isWildcard: boolean }
    | undefined;
  /** Once a name was said, an empty list is the end of the subscription. */
  #hasNamed = false;
  #nonce = "";

  constructor(kind: SubscribedKind) {
    this.#kind = kind;
  }

  get isBegun(): boolean {
    return this.#said !== undefined;
  }

  ask(node?: DiscoveryNode): readonly DiscoveryRequest[] {
    const { wanted } = this.#kind;
    const { names, isWildcard } = wanted;
    if (this.#said === undefined && wanted.isEmpty) return [];
    const isSaid = this.#said?.isWildcard === isWildcard &&
      isSameSet(this.#said.names, names);
    return isSaid ? [] : [this.#request(undefined, node)];
  }

  answer(nonce: string, errorDetail?: ErrorDetail): DiscoveryRequest {
    this.#nonce = nonce;
    return this.#request(errorDetail);
  }

  #request(
    errorDetail: ErrorDetail | undefined,
    node?: DiscoveryNode,
  ): DiscoveryRequest {
    const { typeUrl, wanted, acceptedVersion } = this.#kind;
    const { names, isWildcard } = wanted;
    this.#said = { names, isWildcard };
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

/** Requests say what differs. */
class DeltaSubscription implements AdsSubscription {
  readonly #kind: SubscribedKind;
  #said: ReadonlySet<string> | undefined;
  /** What was said was made of these, as long as they are the same sets. */
  #saidOf:
    | { readonly names: ReadonlySet<string>; readonly isWildcard: boolean }
    | undefined;

  constructor(kind: SubscribedKind) {
    this.#kind = kind;
  }

  get isBegun(): boolean {
    return this.#said !== undefined;
  }

  ask(node?: DiscoveryNode): readonly DiscoveryRequest[] {
    const { wanted } = this.#kind;
    const said = this.#said;
    if (said === undefined && wanted.isEmpty) return [];
    const { isWildcard } = wanted;
    // Asked after each response: thousands of names are not compared each time.
    const isSaid = this.#saidOf?.names === wanted.names &&
      this.#saidOf.isWildcard === isWildcard;
    if (isSaid) return [];
    this.#saidOf = { names: wanted.names, isWildcard };
    const names = isWildcard
      ? new Set([WILDCARD, ...wanted.names])
      : wanted.names;
    const subscribe = [...names].filter((name) => !said?.has(name));
    const unsubscribe = [...said ?? []].filter((name) => !names.has(name));
    if (subscribe.length === 0 && unsubscribe.length === 0) return [];
    this.#said = names;
    const isFirst = said === undefined;
    const initialVersions = isFirst ? this.#kind.heldVersions() : NO_VERSIONS;
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
      typeUrl: this.#kind.typeUrl,
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
