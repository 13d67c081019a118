/**
 * What the admin port shows of discovery, by Pilot's paths. Everything is made
 * when somebody asks.
 *
 * @module
 */

import type { Catalog } from "../../../catalog/catalog.ts";
import { jsonAnswer, type Routes } from "../../../net/admin/http_endpoints.ts";
import type { Clock } from "../../../proto/sync/clock.ts";
import type { Audience } from "../generate/audience.ts";
import type { Unserved } from "../generate/service_resources.ts";
import type { AdsStream } from "../streams/ads_stream.ts";
import type { View } from "../view/view.ts";
import { clientDiffs, streamsOf } from "./client_diff.ts";
import { configOf } from "./config_dump.ts";
import {
  CONFIG_DUMP_PATH,
  CONFIGZ_PATH,
  ENDPOINTZ_PATH,
  SYNCZ_PATH,
} from "./status_paths.ts";
import { clientSummaries } from "./sync_status.ts";

/** What is shown. */
export interface Shown {
  readonly catalog: Catalog;
  readonly streams: ReadonlySet<AdsStream>;
  /** Whether clients are answered. */
  readonly isReady: boolean;
  viewOf(audience: Audience): View | undefined;
  unservedTo(audience: Audience): readonly Unserved[];
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
      ofNode(url, (name) => ({
        clients: clientDiffs(
          shown.streams,
          name,
          clock.now(),
          (audience) => shown.unservedTo(audience),
        ),
      })),
    [CONFIG_DUMP_PATH]: (url) =>
      ofNode(url, (name) => ({
        clients: [...streamsOf(shown.streams, name)].flatMap((stream) => {
          const view = shown.viewOf(stream.audience!);
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
