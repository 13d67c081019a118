/**
 * The HTTP/2 settings of a scenario's links.
 *
 * @module
 */

import type { LocalSettings } from "../../proto/streams/settings.ts";
import type { Plan } from "./plan.ts";

/** Windows as planned; fixed ones make what a conduit may pin exact. */
export function linkSettings(plan: Plan): Partial<LocalSettings> {
  const { windowBytes, windowIsFixed } = plan;
  return {
    initialWindowSize: windowBytes,
    ...(windowIsFixed ? { streamWindowMax: windowBytes } : {}),
  };
}
