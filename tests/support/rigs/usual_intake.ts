/**
 * An intake with the limits that a server has by default.
 *
 * @module
 */

import { Intake, type IntakeOptions } from "../../../net/admission/intake.ts";
import {
  ALL_LIMITS_DEFAULT,
  SOURCE_LIMITS_DEFAULT,
} from "../../../net/admission/intake_limits.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";

/** See the module description. */
export function usualIntake(options: Partial<IntakeOptions> = {}): Intake {
  return new Intake({
    plan: { all: ALL_LIMITS_DEFAULT, source: SOURCE_LIMITS_DEFAULT },
    clock: systemTimers,
    reached: () => {},
    ...options,
  });
}
