/**
 * All faults, in the order in which they are played.
 *
 * @module
 */

import type { FaultFamily } from "../fault.ts";
import { KILL_FAULTS } from "./kill.ts";

export const FAMILIES: FaultFamily = {
  ...KILL_FAULTS,
};
