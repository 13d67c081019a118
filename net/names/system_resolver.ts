/**
 * The one resolver of this process, so that all callers share its cache.
 *
 * @module
 */

import { systemTimers } from "../../platform/time/system_timers.ts";
import { MachineResolver } from "./machine_resolver.ts";
import type { Resolver } from "./resolver.ts";

let machine: MachineResolver | undefined;

/** The resolver of the machine. */
export const systemResolver: Resolver = {
  lookup(host) {
    // Made at the first use: most commands look up no name.
    machine ??= new MachineResolver({ timers: systemTimers });
    return machine.lookup(host);
  },
};
