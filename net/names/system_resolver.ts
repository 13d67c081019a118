/**
 * The one resolver of this process, so that all callers share its cache.
 *
 * @module
 */

import { systemTimers } from "../../platform/time/system_timers.ts";
import { MachineResolver } from "./machine_resolver.ts";
import type { KeepingResolver } from "./resolver.ts";

let machine: MachineResolver | undefined;

/** Made at the first use: most commands look up no name. */
function resolver(): MachineResolver {
  return machine ??= new MachineResolver({ timers: systemTimers });
}

/** The resolver of the machine. */
export const systemResolver: KeepingResolver = {
  lookup: (host) => resolver().lookup(host),
  find: (host) => resolver().find(host),
};
