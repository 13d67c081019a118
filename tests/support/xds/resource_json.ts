/**
 * Resources of xDS as plain data, for tests that look into them.
 *
 * @module
 */

import { resourceData } from "../../../proto/xds/resource_data.ts";
import { Any } from "../../../proto/xds/xds_messages.ts";

/** @param any An encoded `google.protobuf.Any`, as resources have it. */
// deno-lint-ignore no-explicit-any -- tests pick out of it whatever they want.
export function resourceJson(any: Uint8Array): any {
  return resourceData(Any.decode(any));
}
