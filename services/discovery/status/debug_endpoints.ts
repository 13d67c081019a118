/**
 * What the admin port shows of discovery, at Pilot's paths. Everything is made
 * when somebody asks.
 *
 * @module
 */

import type { Catalog } from "../../catalog/catalog.ts";
import { jsonAnswer, type Routes } from "../../../net/admin/http_endpoints.ts";
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
import type { ResourceStatus } from "../subscriptions/resource_status.ts";
import type { View } from "../view/view.ts";
import {
  clientSummaries,
  type ClientSummary,
  clientSummary,
  CONFIG_DUMP_PATH,
  CONFIGZ_PATH,
  ENDPOINTZ_PATH,
  SYNCZ_PATH,
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

/** The answers by path. */
export function debugRoutes(shown: Shown, clock: Clock): Routes {
  return {
    [SYNCZ_PATH]: () =>
      jsonAnswer({
        ready: shown.isReady,
        sources: shown.catalog.status.map(({ name, isSynced, problem }) => ({
          name,
          synced: isSynced,
          ...(problem === undefined ? {} : { problem }),
        })),
        clients: clientSummaries(shown.streams, clock.now()),
      }),
    [CONFIGZ_PATH]: (url) =>
      ofNode(url, (name) => ({ clients: clientDiffs(shown, name, clock) })),
    [CONFIG_DUMP_PATH]: (url) =>
      ofNode(url, (name) => ({
        clients: [...streamsOf(shown, name)].flatMap((stream) => {
          const view = shown.viewOf(stream.group!);
          return view === undefined ? [] : [configOf(stream, view)];
        }),
      })),
    [ENDPOINTZ_PATH]: () => {
      const { version, endpoints } = shown.catalog.snapshot;
      return jsonAnswer({
        version,
        endpoints: Object.fromEntries(endpoints),
      });
    },
  };
}

/** @param answer About all clients of a name, maybe none. */
function ofNode(url: URL, answer: (name: string) => unknown): Response {
  const name = url.searchParams.get("node") ?? "";
  if (name !== "") return jsonAnswer(answer(name));
  return new Response(
    `Cannot tell of whom: wanted ${url.pathname}?node=NAME, with a name of ` +
      `${SYNCZ_PATH}\n`,
    { status: 400 },
  );
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
