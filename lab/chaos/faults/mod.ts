/**
 * All faults, in the order in which they are played.
 *
 * @module
 */

import type { FaultFamily } from "../fault.ts";
import type { StateKind } from "../topology.ts";
import {
  FREEZE_FAULTS,
  KILL_FAULTS,
  LONG_FREEZE_FAULTS,
  WORKER_FAULTS,
} from "./processes.ts";
import { MACHINE_FAULTS } from "./machine.ts";
import { NAME_FAULTS } from "./names.ts";
import { LONG_NETWORK_FAULTS, NETWORK_FAULTS } from "./network.ts";
import {
  ETCD_FAULTS,
  KUBERNETES_FAULTS,
  LONG_ETCD_FAULTS,
  LONG_KUBERNETES_FAULTS,
} from "./stores.ts";

/** Those of the cut. */
const SHORT: FaultFamily = {
  ...KILL_FAULTS,
  ...FREEZE_FAULTS,
  ...NETWORK_FAULTS,
  ...MACHINE_FAULTS,
  ...NAME_FAULTS,
};

const LONG: FaultFamily = {
  ...SHORT,
  ...LONG_FREEZE_FAULTS,
  ...LONG_NETWORK_FAULTS,
};

/** With which those of a stage are paired: any stage can have them. */
export const PAIRED_FAULTS: FaultFamily = {
  ...KILL_FAULTS,
  ...FREEZE_FAULTS,
  ...NETWORK_FAULTS,
};

/** What is played on a stage: on others than the first, what is theirs. */
export function faultsOf(state: StateKind, isCut: boolean): FaultFamily {
  if (state === "directory") return isCut ? SHORT : LONG;
  if (state === "workers") return WORKER_FAULTS;
  if (state === "etcd") {
    return isCut ? ETCD_FAULTS : { ...ETCD_FAULTS, ...LONG_ETCD_FAULTS };
  }
  return isCut
    ? KUBERNETES_FAULTS
    : { ...KUBERNETES_FAULTS, ...LONG_KUBERNETES_FAULTS };
}
