/**
 * What the admin API answers about clients of discovery. Everything is made when
 * it is asked for.
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
} from "../../../proto/xds/resource.ts";
import { Any } from "../../../proto/xds/xds_messages.ts";
import type { ClientGroup } from "../generate/client_group.ts";
import type { Unserved } from "../generate/service_resources.ts";
import type { SubscriberStream } from "../streams/subscriber_stream.ts";
import type { ResourceStatus } from "../subscriptions/stream_status.ts";
import type { View } from "../view/view.ts";
import {
  clientSummaries,
  type ClientSummary,
  clientSummary,
} from "./sync_status.ts";

/** What is shown. */
export interface Shown {
  readonly catalog: Catalog;
  readonly streams: ReadonlySet<SubscriberStream>;
  /** Whether clients are answered. */
  readonly isReady: boolean;
  viewOf(group: ClientGroup): View | undefined;
  unservedTo(group: ClientGroup): readonly Unserved[];
}

/**
 * What one client has against what it should have, and what it should have and
 * cannot be served.
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

/** What there is to ask besides a list of clients. */
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
        ...(problem === undefined ? {} : { problem }),
      })),
      clients: clientSummaries(shown.streams, clock.now()),
    }),
    diff: (url) => ({ clients: clientDiffs(shown, nodeIn(url), clock) }),
    config: (url) => ({
      clients: [...streamsOf(shown, nodeIn(url))].flatMap((stream) => {
        const view = shown.viewOf(stream.group!);
        return view === undefined ? [] : [configOf(stream, view)];
      }),
    }),
    endpoints: () => {
      const { version, endpoints } = shown.catalog.snapshot;
      return { version, endpoints: Object.fromEntries(endpoints) };
    },
  };
}

/** Of whom is told: all clients of that name, maybe none. @throws {AdminFailure} */
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
    return [{ summary, kinds, unserved: shown.unservedTo(stream.group!) }];
  });
}

/** As protobuf's JSON, so that it compares with what Envoy dumps. */
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
