/**
 * What agents have announced, saved in a state that is not on this machine: so
 * that it survives a restart on another one.
 *
 * Places have a limit on a record's size, so a server's agents are in several
 * parts. Each stands for itself: of an agent that an interrupted saving has left
 * in two of them, what was seen last counts.
 *
 * @module
 */

import type { Log } from "../../../platform/log/log.ts";
import type { Store } from "../../../neighbours/store/store.ts";
import { StoreAwayError } from "../../../neighbours/store/store_error.ts";
import {
  latestOf,
  type MemberMemory,
  membersOf,
  membersText,
  parseMembers,
  type RememberedAgent,
} from "./member_memory.ts";

/** Parts of what was announced. */
const PARTS = "discovery";

const PART_NAME = /^members-[0-9a-f]{16}\.\d{1,2}\.json$/;

/** Parts of one server: 64 MB where a record has 1 MB. */
const PARTS_MAX = 64;

/** Parts of all servers that share a state. */
const READ_MAX = 32 * PARTS_MAX;

/** See the module description. */
export class MemberRecords implements MemberMemory {
  readonly #name: string;
  /** Of this server, as far as is known. */
  #parts = PARTS_MAX;
  #warned: string | undefined;

  constructor(
    private readonly state: Store,
    serverId: string,
    private readonly log: Pick<Log, "warn">,
  ) {
    this.#name = membersOf(serverId);
  }

  async load(): Promise<readonly RememberedAgent[]> {
    const saved: RememberedAgent[] = [];
    try {
      const names = await this.state.list(PARTS);
      const parts = names.filter((name) => PART_NAME.test(name));
      for (const name of parts.slice(0, READ_MAX)) {
        saved.push(...await this.#read(`${PARTS}/${name}`));
      }
    } catch (error) {
      this.#warn("see what agents announced elsewhere", error);
    }
    return latestOf(saved);
  }

  async save(agents: readonly RememberedAgent[]): Promise<void> {
    try {
      const texts = partsOf(agents, this.state.recordBytesMax);
      for (const [index, text] of texts.entries()) {
        await this.state.transact((change) =>
          change.put(`${PARTS}/${this.#name}.${index}.json`, text)
        );
      }
      if (texts.length < this.#parts) await this.#removeFrom(texts.length);
      this.#parts = texts.length;
      this.#warned = undefined;
    } catch (error) {
      this.#warn("keep what agents announce", error);
    }
  }

  async #read(key: string): Promise<readonly RememberedAgent[]> {
    try {
      const text = await this.state.look(key) ?? "";
      // Earlier versions have written a line of their own before it.
      return text === "" ? [] : parseMembers(text.slice(text.indexOf("{")));
    } catch (error) {
      this.#warn(`use what agents announced by ${key}`, error);
      return [];
    }
  }

  /** Parts that are no longer wanted. */
  async #removeFrom(index: number): Promise<void> {
    const prefix = `${this.#name}.`;
    for (const name of await this.state.list(PARTS, prefix)) {
      if (Number(name.slice(prefix.length).replace(".json", "")) < index) {
        continue;
      }
      await this.state.transact((change) => change.remove(`${PARTS}/${name}`));
    }
  }

  #warn(what: string, error: unknown): void {
    // Whoever keeps the state says that it is away.
    if (error instanceof StoreAwayError) return;
    if (!(error instanceof Error)) throw error;
    const line = `Cannot ${what}: ${error.message}; agents announce it again`;
    if (line !== this.#warned) this.log.warn(line, { code: "TUN905" });
    this.#warned = line;
  }
}

/** Texts that each fit into a record; none when there are no agents. */
function partsOf(
  agents: readonly RememberedAgent[],
  bytesMax: number,
): readonly string[] {
  const encoder = new TextEncoder();
  // Room for the format, and what is around a list.
  const roomBytes = bytesMax - 200;
  const parts: RememberedAgent[][] = [];
  let bytes = Infinity;
  for (const agent of agents) {
    const size = encoder.encode(JSON.stringify(agent)).length + 1;
    if (bytes + size > roomBytes) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)!.push(agent);
    bytes += size;
  }
  return parts.slice(0, PARTS_MAX).map(membersText);
}
