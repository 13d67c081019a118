/**
 * What a client has against what it should have, and what it should have and
 * cannot be served.
 *
 * @module
 */

import type { ResourceKind } from "../../../proto/xds/resource.ts";
import type { Audience } from "../generate/audience.ts";
import type { Unserved } from "../generate/service_resources.ts";
import type { AdsStream } from "../streams/ads_stream.ts";
import type { Holding } from "../subscriptions/holdings.ts";
import { type ClientSummary, clientSummary } from "./sync_status.ts";

/** One client. */
export interface ClientDiff {
  readonly summary: ClientSummary;
  readonly kinds: readonly {
    readonly kind: ResourceKind;
    readonly holdings: readonly Holding[];
  }[];
  /** Services that it may see, and of which something is not served to it. */
  readonly unserved: readonly Unserved[];
}

/**
 * All clients of a name: of a node, whatever it relays too, or of a client.
 *
 * @param unservedTo Of an audience.
 */
export function clientDiffs(
  streams: Iterable<AdsStream>,
  name: string,
  nowMs: number,
  unservedTo: (audience: Audience) => readonly Unserved[],
): readonly ClientDiff[] {
  return [...streamsOf(streams, name)].flatMap((stream) => {
    const summary = clientSummary(stream, nowMs);
    if (summary === undefined) return [];
    const kinds = [...stream.state.holdings]
      .map(([kind, holdings]) => ({ kind, holdings }));
    return [{ summary, kinds, unserved: unservedTo(stream.audience!) }];
  });
}

/** Streams of a node or of a client. */
export function* streamsOf(
  streams: Iterable<AdsStream>,
  name: string,
): Iterable<AdsStream> {
  for (const stream of streams) {
    const { subscriber, audience } = stream;
    if (subscriber === undefined || audience === undefined) continue;
    if (subscriber.name === name || subscriber.node === name) yield stream;
  }
}
