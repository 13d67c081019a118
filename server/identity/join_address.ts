/**
 * The address at which nodes reach the server, for commands on the server's
 * machine.
 *
 * A running server writes it to a file; nothing else depends on that file.
 *
 * @module
 */

import { portOf } from "../../proto/peer/host_port.ts";
import { hostname } from "node:os";
import { keepFile } from "../../platform/files/atomic_file.ts";
import type { DirectoryStore } from "../../neighbours/store/directory_store.ts";

const FILE = "serving.json";
/** Konnectivity's port for agents, and so the default of `--agent-port`. */
const DEFAULT_PORT = 8091;

interface Serving {
  /** `host:port` as bound. */
  readonly agents: string;
  readonly names: readonly string[];
}

/** Writes down where agents connect. */
export function noteAddress(
  state: DirectoryStore,
  serving: Serving,
  warn: (line: string) => void,
): Promise<boolean> {
  return keepFile(state.path(FILE), JSON.stringify(serving) + "\n", warn);
}

/**
 * The best guess at `host:port` of the agent port as a node would write it: the
 * address it is bound to, else a name of the server, else of the machine.
 */
export async function joinAddress(stateDirectory: string): Promise<string> {
  let serving: Partial<Serving> = {};
  try {
    serving = JSON.parse(
      await Deno.readTextFile(`${stateDirectory}/${FILE}`),
    );
  } catch {
    // Never started, or an old file: the defaults are a guess as well.
  }
  const { agents = `[::]:${DEFAULT_PORT}`, names = [] } = serving;
  const isEverywhere = /^(?:\[::\]|0\.0\.0\.0):/.test(agents);
  if (!isEverywhere) return agents;
  return `${names[0] ?? hostname()}:${portOf(agents)}`;
}
