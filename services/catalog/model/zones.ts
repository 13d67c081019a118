/**
 * Which endpoints are near.
 *
 * @module
 */

import type { Endpoint } from "./model.ts";

/**
 * Whether `endpoint` is meant for `zone` (topology hints), or is in it where
 * nobody says whom it is meant for.
 */
export function isNear({ zone, forZones }: Endpoint, here: string): boolean {
  return forZones === undefined ? zone === here : forZones.includes(here);
}
