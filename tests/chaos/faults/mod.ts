/**
 * All faults, in the order in which they are played.
 *
 * @module
 */

import type { FaultFamily } from "../fault.ts";
import { FREEZE_FAULTS, LONG_FREEZE_FAULTS } from "./freeze.ts";
import { KILL_FAULTS } from "./kill.ts";
import { MACHINE_FAULTS } from "./machine.ts";
import { NAME_FAULTS } from "./names.ts";
import { LONG_NETWORK_FAULTS, NETWORK_FAULTS } from "./network.ts";

/** Those of the cut. */
export const SHORT_FAULTS: FaultFamily = {
  ...KILL_FAULTS,
  ...FREEZE_FAULTS,
  ...NETWORK_FAULTS,
  ...MACHINE_FAULTS,
  ...NAME_FAULTS,
};

export const ALL_FAULTS: FaultFamily = {
  ...SHORT_FAULTS,
  ...LONG_FREEZE_FAULTS,
  ...LONG_NETWORK_FAULTS,
};
