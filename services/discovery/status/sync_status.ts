/**
 * How far each client is, by kind, as Pilot's syncz has it.
 *
 * @module
 */

import { TYPE_URLS } from "../../../proto/xds/resource.ts";
import type { SubscriberStream } from "../streams/subscriber_stream.ts";
import type {
  KindStatus,
  StampedResponse,
} from "../subscriptions/stream_status.ts";

/** A response, and how long ago it was sent or answered. */
export interface ResponseSummary {
  readonly version: string;
  readonly nonce: string;
  readonly agoMs: number;
}

/** One kind of one client. */
export interface KindSummary {
  readonly kind: string;
  /** As clients call it: `ClusterLoadAssignment`. */
  readonly type: string;
  /** Names that it asked for. */
  readonly names: number;
  readonly wildcard: boolean;
  readonly sent?: ResponseSummary;
  readonly acked?: ResponseSummary;
  /** What it refused last, if it has acknowledged nothing since. */
  readonly nacked?: ResponseSummary & {
    readonly message: string;
    readonly names: readonly string[];
  };
  readonly state: SyncState;
  /** For how long it has not answered a response. */
  readonly lagMs: number;
  readonly responses: number;
  readonly acks: number;
  readonly nacks: number;
  /** Requests about responses that were not the last. */
  readonly stale: number;
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
  readonly node?: string;
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
  readonly early?: {
    readonly agoMs: number;
    readonly clusters: readonly string[];
  };
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
    ...(node === undefined ? {} : { node }),
    form: group.form,
    mode: form.mode,
    from: origin.remoteAddress,
    software: `${xdsNode.userAgentName} ${xdsNode.userAgentVersion}`.trim(),
    connectedMs: Math.round(nowMs - stream.sinceMs),
    keptBytes: stream.keptBytes,
    kinds: kinds.map((status) => kindSummary(status, nowMs)),
    foreignTypes,
    waitsFor,
    ...early === undefined ? {} : {
      early: {
        agoMs: Math.round(nowMs - early.atMs),
        clusters: early.clusters,
      },
    },
  };
}

function kindSummary(status: KindStatus, nowMs: number): KindSummary {
  const { kind, sent, acked, nacked, inFlightSinceMs } = status;
  const summary = (
    { version, nonce, atMs }: StampedResponse,
  ): ResponseSummary => ({
    version,
    nonce,
    agoMs: Math.round(nowMs - atMs),
  });
  return {
    kind,
    type: typeName(TYPE_URLS[kind]),
    names: status.nameCount,
    wildcard: status.isWildcard,
    ...(sent === undefined ? {} : { sent: summary(sent) }),
    ...(acked === undefined ? {} : { acked: summary(acked) }),
    ...(nacked === undefined ? {} : {
      nacked: {
        ...summary(nacked),
        message: nacked.message,
        names: nacked.names,
      },
    }),
    state: syncStateOf(status),
    lagMs: inFlightSinceMs === undefined
      ? 0
      : Math.round(nowMs - inFlightSinceMs),
    responses: status.responses,
    acks: status.acks,
    nacks: status.nacks,
    stale: status.staleRequests,
  };
}

/** Of several states that apply, the one that people should look at. */
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
