/**
 * What agents have announced, saved in a state that is not on this machine: so
 * that it survives a restart on another one, and servers know of each other's
 * agents.
 *
 * Places have a limit on a record's size, so a server's agents are in several
 * parts; a small record of its own says how many, which ones belong together, and
 * that the server is there. That one is looked at, the parts are read when it says
 * that they are others.
 *
 * @module
 */

import type { Log } from "../../../platform/log/log.ts";
import type { StateEngine } from "../../state/state_engine.ts";
import { StateAwayError, StateError } from "../../state/state_error.ts";
import {
  membersOf,
  membersText,
  newestOf,
  parseMembers,
  type RememberedAgent,
  type SavedMembers,
  type SharedMemory,
} from "./member_memory.ts";

/** Records that say what there is. */
const HEADS = "servers";

/** Parts of what was announced. */
const PARTS = "discovery";

const HEAD_NAME = /^members-[0-9a-f]{16}\.json$/;

/** Servers that share a state. */
const SERVERS_MAX = 32;

/** Parts of one server: 64 MB where a record has 1 MB. */
const PARTS_MAX = 64;

/** What says what there is. */
interface Head extends SavedMembers {
  readonly parts: number;
}

/** See the module description. */
export class MemberRecords implements SharedMemory {
  /** A request each for the list and for each server. */
  readonly lookMs = 2_000;
  readonly path: string;
  readonly #name: string;
  #own: Head | undefined;
  #warned: string | undefined;

  constructor(
    private readonly state: StateEngine,
    serverId: string,
    private readonly log: Pick<Log, "warn">,
    private readonly now: () => number = Date.now,
  ) {
    this.#name = membersOf(serverId);
    this.path = `${HEADS}/${this.#name}.json`;
  }

  load(): Promise<readonly RememberedAgent[]> {
    return newestOf(this);
  }

  async save(agents: readonly RememberedAgent[]): Promise<void> {
    try {
      const stamp = crypto.randomUUID();
      const texts = partsOf(agents, this.state.recordBytesMax);
      for (const [index, text] of texts.entries()) {
        await this.#put(partKey(this.#name, index), `${stamp}\n${text}`);
      }
      const own = { stamp, parts: texts.length, aliveMs: this.now() };
      await this.#put(this.path, JSON.stringify(own) + "\n");
      await this.#removeFrom(texts.length);
      this.#own = own;
      this.#warned = undefined;
    } catch (error) {
      this.#warn("keep what agents announce", error);
    }
  }

  async renew(): Promise<void> {
    if (this.#own === undefined) return;
    try {
      const own = { ...this.#own, aliveMs: this.now() };
      await this.#put(this.path, JSON.stringify(own) + "\n");
    } catch (error) {
      this.#warn("say that this server is there", error);
    }
  }

  async files(): Promise<readonly string[] | undefined> {
    try {
      const names = await this.state.list(HEADS);
      return names.filter((name) => HEAD_NAME.test(name))
        .slice(0, SERVERS_MAX).map((name) => `${HEADS}/${name}`);
    } catch (error) {
      this.#warn("see what agents announced elsewhere", error);
      return undefined;
    }
  }

  look(path: string): Promise<Partial<SavedMembers> | undefined> {
    return this.#head(path);
  }

  async read(path: string): Promise<readonly RememberedAgent[] | undefined> {
    const head = await this.#head(path);
    if (head === undefined) return undefined;
    try {
      const agents: RememberedAgent[] = [];
      for (let index = 0; index < head.parts; index++) {
        const text = await this.state.look(partKey(nameOf(path), index));
        // It is just being saved: the next look sees it whole.
        if (!text?.startsWith(`${head.stamp}\n`)) return undefined;
        agents.push(...parseMembers(text.slice(head.stamp.length + 1)));
      }
      return agents;
    } catch (error) {
      this.#warn(`use what agents announced by ${path}`, error);
      return undefined;
    }
  }

  async #head(path: string): Promise<Head | undefined> {
    try {
      const text = await this.state.look(path);
      const { stamp, parts, aliveMs } = Object(JSON.parse(text ?? "null"));
      const isWhole = typeof stamp === "string" && Number.isInteger(parts) &&
        parts >= 0 && parts <= PARTS_MAX && Number.isFinite(aliveMs);
      return isWhole ? { stamp, parts, aliveMs } : undefined;
    } catch (error) {
      this.#warn(`use what agents announced by ${path}`, error);
      return undefined;
    }
  }

  async #put(key: string, text: string): Promise<void> {
    await this.state.transact((change) => change.put(key, text));
  }

  /** Parts that are no longer wanted. */
  async #removeFrom(index: number): Promise<void> {
    const before = this.#own?.parts ?? PARTS_MAX;
    if (index >= before) return;
    const prefix = `${this.#name}.`;
    const names = await this.state.list(PARTS, prefix);
    for (const name of names) {
      if (Number(name.slice(prefix.length).replace(".json", "")) < index) {
        continue;
      }
      await this.state.transact((change) => change.remove(`${PARTS}/${name}`));
    }
  }

  #warn(what: string, error: unknown): void {
    // Whoever keeps the state says that it is away.
    if (error instanceof StateAwayError) return;
    const isKnown = error instanceof StateError ||
      error instanceof SyntaxError || error instanceof Error;
    if (!isKnown) throw error;
    const line = `Cannot ${what}: ${error.message}; agents announce it again`;
    if (line !== this.#warned) this.log.warn(line, { code: "TUN905" });
    this.#warned = line;
  }
}

function partKey(name: string, index: number): string {
  return `${PARTS}/${name}.${index}.json`;
}

/** `servers/NAME.json` → `NAME`. */
function nameOf(path: string): string {
  return path.slice(HEADS.length + 1, -".json".length);
}

/** Texts that each fit into a record, stamp included; none when there are no agents. */
function partsOf(
  agents: readonly RememberedAgent[],
  bytesMax: number,
): readonly string[] {
  const encoder = new TextEncoder();
  // Room for the stamp, the format, and what is around a list.
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
