/**
 * The admin API's answers about clients of discovery, and the progress of each,
 * by kind, like Pilot's syncz. Everything is computed on request.
 *
 * @module
 */

import type { Catalog } from "../../catalog/catalog.ts";
import { AdminFailure } from "../../../net/admin/admin_api.ts";
import { ADMIN_PATHS } from "../../../proto/admin/api.ts";
import type { Clock } from "../../../proto/sync/clock.ts";
import { canonicalJson } from "../../../proto/xds/canonical_json.ts";
import {
  type Resource,
  RESOURCE_KINDS,
  type ResourceKind,
  TYPE_URLS,
} from "../../../proto/xds/resource.ts";
import { Any } from "../../../proto/xds/xds_messages.ts";
import type { Unserved } from "../generate/service_resources.ts";
import type { Views } from "../generate/views.ts";
import type { SubscriberStream } from "../streams/subscriber_stream.ts";
import type {
  KindStatus,
  NackedResponse,
  ResourceStatus,
  StampedResponse,
} from "../subscriptions/stream_status.ts";
import type { SentEarly } from "../subscriptions/warming.ts";
import type { View } from "../view/view.ts";

/** The shown values. */
export interface Shown {
  readonly catalog: Catalog;
  readonly streams: ReadonlySet<SubscriberStream>;
  /** Whether clients are answered. */
  readonly isReady: boolean;
  readonly views: Pick<Views, "viewOf" | "unservedTo">;
}

/**
 * Compares what a client has with what it should have, and names what it should
 * have and cannot be served.
 */
export interface ClientDiff {
  readonly summary: ClientSummary;
  readonly kinds: readonly {
    readonly kind: ResourceKind;
    readonly resources: readonly ResourceStatus[];
  }[];
  /** Services that it may see, and of which something is not served to it. */
  readonly unserved: readonly Unserved[];
}

/** The questions besides a list of clients. */
export const DISCOVERY_ANSWERS = [
  "sync",
  "diff",
  "config",
  "endpoints",
] as const;

/** The path of each in the admin API. */
export function discoveryPath(what: typeof DISCOVERY_ANSWERS[number]): string {
  return `${ADMIN_PATHS.discovery}/${what}`;
}

/** By name; `url` is what was asked for. */
export type DiscoveryAnswers = Readonly<
  Record<typeof DISCOVERY_ANSWERS[number], (url: URL) => unknown>
>;

/** See the module description. */
export function discoveryAnswers(shown: Shown, clock: Clock): DiscoveryAnswers {
  return {
    sync: () => ({
      ready: shown.isReady,
      sources: shown.catalog.status.map(({ name, isSynced, problem }) => ({
        name,
        synced: isSynced,
        problem,
      })),
      clients: clientSummaries(shown.streams, clock.now()),
    }),
    diff: (url) => ({ clients: clientDiffs(shown, nodeIn(url), clock) }),
    config: (url) => ({
      clients: [...streamsOf(shown, nodeIn(url))].flatMap((stream) => {
        const view = shown.views.viewOf(stream.group!);
        return view === undefined ? [] : [configOf(stream, view)];
      }),
    }),
    endpoints: () => {
      const { version, endpoints } = shown.catalog.snapshot;
      return { version, endpoints: Object.fromEntries(endpoints) };
    },
  };
}

/** All clients of one name, maybe none. @throws {AdminFailure} */
function nodeIn(url: URL): string {
  const name = url.searchParams.get("node") ?? "";
  if (name !== "") return name;
  throw new AdminFailure(400, {
    message: `Cannot tell of whom: wanted ${url.pathname}?node=NAME, with a ` +
      `name of ${discoveryPath("sync")}`,
  });
}

/** Streams of a client, or of a node with all that it relays. */
function* streamsOf(shown: Shown, name: string): Iterable<SubscriberStream> {
  for (const stream of shown.streams) {
    const { subscriber, group } = stream;
    if (subscriber === undefined || group === undefined) continue;
    if (subscriber.name === name || subscriber.node === name) yield stream;
  }
}

function clientDiffs(
  shown: Shown,
  name: string,
  clock: Clock,
): readonly ClientDiff[] {
  return [...streamsOf(shown, name)].flatMap((stream) => {
    const summary = clientSummary(stream, clock.now());
    if (summary === undefined) return [];
    const kinds = [...stream.state.resourceStatuses]
      .map(([kind, resources]) => ({ kind, resources }));
    return [{
      summary,
      kinds,
      unserved: shown.views.unservedTo(stream.group!),
    }];
  });
}

/** As protobuf's JSON, so that it can be compared with Envoy's config dump. */
function configOf(
  { subscriber, group, state }: SubscriberStream,
  view: View,
): unknown {
  const { resourceStatuses } = state;
  return {
    client: subscriber!.name,
    form: group!.form,
    ...Object.fromEntries(RESOURCE_KINDS.map((kind) => [
      kind,
      (resourceStatuses.get(kind) ?? []).flatMap(({ name }) => {
        const resource = view.resources[kind].get(name);
        return resource === undefined ? [] : [resourceText(resource)];
      }),
    ])),
  };
}

function resourceText({ version, any }: Resource): unknown {
  return { version, resource: canonicalJson(Any.decode(any)) };
}

/** What was at a time, and how long ago that is. */
type Aged<Timed extends { readonly atMs: number }> =
  & Omit<Timed, "atMs">
  & { readonly agoMs: number };

/** One kind of one client. */
export interface KindSummary extends
  Pick<
    KindStatus,
    "kind" | "names" | "wildcard" | "responses" | "acks" | "nacks" | "stale"
  > {
  /** As clients call it: `ClusterLoadAssignment`. */
  readonly type: string;
  readonly sent?: Aged<StampedResponse> | undefined;
  readonly acked?: Aged<StampedResponse> | undefined;
  /** Its last refusal, if it has acknowledged nothing since. */
  readonly nacked?: Aged<NackedResponse> | undefined;
  readonly state: SyncState;
  /** For how long it has not answered a response. */
  readonly lagMs: number;
}

/**
 * - `unsent`: nothing was ever sent of it.
 * - `waiting`: a response is not answered yet.
 * - `refused`: the client refuses some or all of it.
 * - `behind`: there is more to send.
 * - `synced`: the client has acknowledged everything.
 */
export type SyncState =
  | "unsent"
  | "waiting"
  | "refused"
  | "behind"
  | "synced";

/** One client, on one stream. */
export interface ClientSummary {
  readonly client: string;
  /** The node that answers for it. */
  readonly node?: string | undefined;
  readonly form: string;
  readonly mode: string;
  readonly from: string;
  readonly software: string;
  readonly connectedMs: number;
  /** Bytes of a response that it has not read. */
  readonly keptBytes: number;
  readonly kinds: readonly KindSummary[];
  /** Types that it asked for and that are not served. */
  readonly foreignTypes: readonly string[];
  /** Some of the clusters that its listeners and routes wait for. */
  readonly waitsFor: readonly string[];
  /** It was sent listeners or routes before it acknowledged their clusters. */
  readonly early?: Aged<SentEarly> | undefined;
}

/** All clients, in the order of their names; of one name the latest first. */
export function clientSummaries(
  streams: Iterable<SubscriberStream>,
  nowMs: number,
): readonly ClientSummary[] {
  return [...streams]
    .flatMap((stream) => clientSummary(stream, nowMs) ?? [])
    .sort((a, b) =>
      a.client < b.client
        ? -1
        : a.client > b.client
        ? 1
        : a.connectedMs - b.connectedMs
    );
}

/** @returns `undefined` for a stream without a subscriber (yet). */
export function clientSummary(
  stream: SubscriberStream,
  nowMs: number,
): ClientSummary | undefined {
  const { subscriber, group, form, origin, state } = stream;
  if (subscriber === undefined || group === undefined) return undefined;
  const { kinds, foreignTypes, waitsFor, early } = state.status;
  const { node, name, xdsNode } = subscriber;
  return {
    client: name,
    node,
    form: group.form,
    mode: form.mode,
    from: origin.remoteAddress,
    software: `${xdsNode.userAgentName} ${xdsNode.userAgentVersion}`.trim(),
    connectedMs: Math.round(nowMs - stream.sinceMs),
    keptBytes: stream.keptBytes,
    kinds: kinds.map((status) => kindSummary(status, nowMs)),
    foreignTypes,
    waitsFor,
    early: early && aged(early, nowMs),
  };
}

function aged<Timed extends { readonly atMs: number }>(
  { atMs, ...rest }: Timed,
  nowMs: number,
): Aged<Timed> {
  return { ...rest, agoMs: Math.round(nowMs - atMs) };
}

function kindSummary(status: KindStatus, nowMs: number): KindSummary {
  const { kind, names, wildcard, responses, acks, nacks, stale } = status;
  const { sent, acked, nacked, inFlightSinceMs = nowMs } = status;
  return {
    ...{ kind, type: typeName(TYPE_URLS[kind]), names, wildcard },
    sent: sent && aged(sent, nowMs),
    acked: acked && aged(acked, nowMs),
    nacked: nacked && aged(nacked, nowMs),
    state: syncStateOf(status),
    lagMs: Math.round(nowMs - inFlightSinceMs),
    ...{ responses, acks, nacks, stale },
  };
}

/** The state that matters most, when several apply. */
export function syncStateOf(status: KindStatus): SyncState {
  if (status.sent === undefined) return "unsent";
  if (status.inFlightSinceMs !== undefined) return "waiting";
  if (status.isRefused) return "refused";
  return status.isBehind ? "behind" : "synced";
}

/** `type.googleapis.com/envoy.config.cluster.v3.Cluster` → `Cluster`. */
function typeName(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf(".") + 1);
}
