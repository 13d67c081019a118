/**
 * What the admin port shows of discovery, by Pilot's paths.
 *
 * @module
 */

import { jsonAnswer, type Routes } from "../../../host/http_endpoints.ts";
import type { Clock } from "../../../proto/sync/clock.ts";
import type { AdsStream } from "../streams/ads_stream.ts";
import { clientSummaries } from "./sync_status.ts";
import { SYNCZ_PATH } from "./status_paths.ts";

/** What is shown. */
export interface Shown {
  readonly streams: ReadonlySet<AdsStream>;
}

/** The answers by path. */
export function debugRoutes(shown: Shown, clock: Clock): Routes {
  return {
    [SYNCZ_PATH]: () =>
      jsonAnswer({ clients: clientSummaries(shown.streams, clock.now()) }),
  };
}
