/**
 * What the clients of a node should have, in full: `/debug/config_dump`. As
 * protobuf's JSON, so that it compares with what Envoy dumps.
 *
 * @module
 */

import { type Resource, RESOURCE_KINDS } from "../../../proto/xds/resource.ts";
import { canonicalJson } from "../../../proto/xds/canonical_json.ts";
import { Any } from "../../../proto/xds/xds_messages.ts";
import type { AdsStream } from "../streams/ads_stream.ts";
import type { View } from "../view/view.ts";

/** What one client should have, in full. */
export function configOf(
  { subscriber, audience, state }: AdsStream,
  view: View,
): unknown {
  const { holdings } = state;
  return {
    client: subscriber!.name,
    form: audience!.form,
    ...Object.fromEntries(RESOURCE_KINDS.map((kind) => [
      kind,
      (holdings.get(kind) ?? []).flatMap(({ name }) => {
        const resource = view.resources[kind].get(name);
        return resource === undefined ? [] : [resourceText(resource)];
      }),
    ])),
  };
}

function resourceText({ version, any }: Resource): unknown {
  return { version, resource: canonicalJson(Any.decode(any)) };
}
