/**
 * The one resolver of this process, so that all who ask share what is known.
 *
 * @module
 */

import { systemTimers } from "../../platform/time/system_timers.ts";
import { MachineResolver } from "./machine_resolver.ts";
import type { KeepingResolver } from "./resolver.ts";

let machine: MachineResolver | undefined;

/** Made when it is first asked: most commands ask for no name. */
function resolver(): MachineResolver {
  return machine ??= new MachineResolver({ timers: systemTimers });
}

/** The resolver of the machine. */
export const systemResolver: KeepingResolver = {
  lookup: (host) => resolver().lookup(host),
  find: (host) => resolver().find(host),
};
