/**
 * A limiter with the limits that a server has by default.
 *
 * @module
 */

import {
  ConnectionLimiter,
  type ConnectionLimiterOptions,
} from "../../../net/admission/connection_limiter.ts";
import {
  ALL_LIMITS_DEFAULT,
  SOURCE_LIMITS_DEFAULT,
} from "../../../net/admission/connection_limits.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";

/** See the module description. */
export function usualLimiter(
  options: Partial<ConnectionLimiterOptions> = {},
): ConnectionLimiter {
  return new ConnectionLimiter({
    plan: { all: ALL_LIMITS_DEFAULT, source: SOURCE_LIMITS_DEFAULT },
    clock: systemTimers,
    reached: () => {},
    ...options,
  });
}
