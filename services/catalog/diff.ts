/**
 * The differences between two snapshots, and their text for people.
 *
 * @module
 */

import { bracketed } from "../../proto/peer/host_port.ts";
import {
  type Endpoint,
  endpointKeyOf,
  keyOf,
  type Service,
  type ServicePort,
} from "./model/model.ts";
import { changedKeys } from "./model/plain_data.ts";
import type { Snapshot } from "./snapshot.ts";

export interface Diff {
  readonly services: Differences<Service>;
  /** By service; only those whose endpoints differ. */
  readonly endpoints: readonly EndpointsDiff[];
}

export interface EndpointsDiff extends Differences<Endpoint> {
  /** `namespace/name`. */
  readonly service: string;
}

export interface Differences<T> {
  readonly added: readonly T[];
  readonly changed: readonly { readonly before: T; readonly after: T }[];
  readonly removed: readonly T[];
}

/**
 * Entries that did not change are the same objects in both, so `===` finds the
 * rest.
 */
export function diffSnapshots(before: Snapshot, after: Snapshot): Diff {
  const endpoints: EndpointsDiff[] = [];
  for (const service of changedKeys(before.endpoints, after.endpoints)) {
    const old = before.endpoints.get(service) ?? [];
    const now = after.endpoints.get(service) ?? [];
    // A service without a list of endpoints and one with an empty list are
    // alike: there is nothing to dial.
    if (old.length + now.length === 0) continue;
    const moved = addressesOfDifferent(old, now);
    endpoints.push({
      service,
      ...diffMaps(byKey(old, moved), byKey(now, moved)),
    });
  }
  return { services: diffMaps(before.services, after.services), endpoints };
}

/** Whether it is empty. */
export function isEmptyDiff({ services, endpoints }: Diff): boolean {
  return isNothing(services) && endpoints.length === 0;
}

/** Services that changed, or whose endpoints did. */
export function touchedIn({ services, endpoints }: Diff): Set<string> {
  return new Set([
    ...services.added.map(keyOf),
    ...services.changed.map(({ after }) => keyOf(after)),
    ...services.removed.map(keyOf),
    ...endpoints.map(({ service }) => service),
  ]);
}

/** How many entries a line names before it only counts. */
const NAMED_MAX = 5;

/**
 * One line: `+default/web; default/db: port 5432/tcp, was 5433/tcp;
 * default/web: +10.0.0.7:80 -10.0.0.8:80`. The long ones end with a count.
 */
export function describeDiff({ services, endpoints }: Diff): string {
  const parts = [
    ...services.added.map((service) => `+${keyOf(service)}`),
    ...services.removed.map((service) => `-${keyOf(service)}`),
    ...services.changed.map(({ before, after }) =>
      `${keyOf(after)}: ${describeService(before, after)}`
    ),
    ...endpoints.map((diff) => `${diff.service}: ${describeEndpoints(diff)}`),
  ];
  return shorten(parts, "; ");
}

function describeService(before: Service, after: Service): string {
  const was = portsText(before.ports);
  const now = portsText(after.ports);
  return was === now ? "other settings" : `ports ${now}, was ${was}`;
}

function portsText(ports: readonly ServicePort[]): string {
  const texts = ports.map(({ name, port, protocol }) =>
    `${name === "" ? "" : `${name}=`}${port}/${protocol}`
  );
  return texts.length === 0 ? "none" : shorten(texts, ",");
}

function describeEndpoints(diff: EndpointsDiff): string {
  const texts = [
    ...diff.added.map((endpoint) => `+${endpointText(endpoint)}`),
    ...diff.removed.map((endpoint) => `-${endpointText(endpoint)}`),
    ...diff.changed.map(({ before, after }) =>
      before.state === after.state
        ? `~${endpointText(after)}`
        : `${addressText(after)} ${after.state}, was ${before.state}`
    ),
  ];
  return texts.length === 0 ? "other order" : shorten(texts, " ");
}

function endpointText(endpoint: Endpoint): string {
  const text = addressText(endpoint);
  return endpoint.state === "ready" ? text : `${text} (${endpoint.state})`;
}

function addressText({ address, ports }: Endpoint): string {
  const host = bracketed(address);
  const numbers = ports.map(({ port }) => port).join("|");
  return numbers === "" ? host : `${host}:${numbers}`;
}

function shorten(texts: readonly string[], between: string): string {
  if (texts.length <= NAMED_MAX) return texts.join(between);
  const named = texts.slice(0, NAMED_MAX).join(between);
  return `${named}${between}and ${texts.length - NAMED_MAX} more`;
}

/**
 * One or two of ten thousand endpoints differ, and only those need a text as
 * key.
 */
function addressesOfDifferent(
  before: readonly Endpoint[],
  after: readonly Endpoint[],
): ReadonlySet<string> {
  const addresses = new Set<string>();
  const moved = (all: readonly Endpoint[], others: readonly Endpoint[]) =>
    all.filter((endpoint, at) => endpoint !== others[at]);
  const note = (all: readonly Endpoint[], others: readonly Endpoint[]) => {
    const there = new Set(others);
    for (const one of all) if (!there.has(one)) addresses.add(one.address);
  };
  const [gone, come] = [moved(before, after), moved(after, before)];
  note(gone, come);
  note(come, gone);
  return addresses;
}

/** Those at some addresses: the same endpoint may be there twice. */
function byKey(
  endpoints: readonly Endpoint[],
  addresses: ReadonlySet<string>,
): Map<string, Endpoint> {
  const found = new Map<string, Endpoint>();
  for (const endpoint of endpoints) {
    if (!addresses.has(endpoint.address)) continue;
    found.set(endpointKeyOf(endpoint), endpoint);
  }
  return found;
}

function diffMaps<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): Differences<T> {
  const added: T[] = [];
  const changed: { before: T; after: T }[] = [];
  const removed: T[] = [];
  for (const key of changedKeys(before, after)) {
    const [old, now] = [before.get(key), after.get(key)];
    if (old === undefined) added.push(now!);
    else if (now === undefined) removed.push(old);
    else changed.push({ before: old, after: now });
  }
  return { added, changed, removed };
}

function isNothing({ added, changed, removed }: Differences<unknown>): boolean {
  return added.length + changed.length + removed.length === 0;
}
