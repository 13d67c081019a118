/**
 * What agents have announced, as texts that servers save and read: a server that
 * has just started knows which agents to wait for, and removes no service whose
 * agents are about to reconnect. Where they are saved says `member_records.ts`.
 *
 * @module
 */

import type { Protocol } from "../../../services/catalog/model/model.ts";
import { sha256Hex } from "../../../platform/pki/key_pair.ts";
import type { OfferedName } from "./announcement.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { Store } from "../../../neighbours/store/store.ts";
import { StoreAwayError } from "../../../neighbours/store/store_error.ts";

/** An agent that announced something, and when it was last linked. */
export interface RememberedAgent {
  readonly id: string;
  /** The name that it proved; empty: none. */
  readonly node: string;
  readonly offers: readonly OfferedName[];
  /** Milliseconds since 1970. */
  readonly seenMs: number;
  /** `unready`: it had no link, or the server that saved it did not say. */
  readonly state: "ready" | "serving" | "unready";
}

/** Where `MembershipSource` saves agents. */
export interface MemberMemory {
  load(): Promise<readonly RememberedAgent[]>;
  /** Never rejects. */
  save(agents: readonly RememberedAgent[]): Promise<void>;
}

const FORMAT = "tunnel-members";
const VERSION = 1;

/**
 * When several servers saved an agent, the record of the one that saw it last
 * counts.
 */
export function latestOf(
  saved: Iterable<RememberedAgent>,
): readonly RememberedAgent[] {
  const latest = new Map<string, RememberedAgent>();
  for (const agent of saved) {
    const known = latest.get(agent.id);
    if (known === undefined || known.seenMs < agent.seenMs) {
      latest.set(agent.id, agent);
    }
  }
  return [...latest.values()];
}

/** The servers that have saved something. */
export function membersOf(serverId: string): string {
  return `members-${
    sha256Hex(new TextEncoder().encode(serverId)).slice(0, 16)
  }`;
}

/** How agents are saved. */
export function membersText(agents: readonly RememberedAgent[]): string {
  return JSON.stringify({ format: FORMAT, version: VERSION, agents }) + "\n";
}

/** @throws {Error} When the text is not such a record. */
export function parseMembers(text: string): RememberedAgent[] {
  const found = Object(JSON.parse(text));
  if (found.format !== FORMAT || found.version !== VERSION) {
    throw new Error(`it is not of version ${VERSION}`);
  }
  return agentsOf(found.agents);
}

/**
 * Agents as a server has saved them.
 *
 * @throws {Error} When the text is not a list of agents.
 */
export function agentsOf(list: unknown): RememberedAgent[] {
  if (!Array.isArray(list) || !list.every(isAgent)) {
    throw new Error("it names no agents");
  }
  return list.map(({ id, node, offers, seenMs, state }) => ({
    ...{ id, node, seenMs },
    state: state === "ready" || state === "serving" ? state : "unready",
    offers: Object.freeze(offers.map(offerOf)),
  }));
}

function isAgent(found: unknown): found is RememberedAgent {
  const { id, node, offers, seenMs } = Object(found);
  return typeof id === "string" && typeof node === "string" &&
    Number.isFinite(seenMs) && Array.isArray(offers) && offers.every(isOffer);
}

function isOffer(found: unknown): found is OfferedName {
  const offer = Object(found);
  const texts = ["service", "namespace", "name", "appProtocol", "address"];
  return texts.every((name) => typeof offer[name] === "string") &&
    Number.isInteger(offer.port) && Number.isInteger(offer.targetPort) &&
    (offer.protocol === "tcp" || offer.protocol === "udp") &&
    offer.service === `${offer.namespace}/${offer.name}`;
}

function offerOf(offer: OfferedName): OfferedName {
  const { service, namespace, name, port, appProtocol } = offer;
  const { address, targetPort } = offer;
  const protocol: Protocol = offer.protocol;
  return Object.freeze({
    ...{ service, namespace, name, port, protocol },
    ...{ appProtocol, address, targetPort },
  });
}

/** The folder of the parts. */
const PARTS = "discovery";

/** Without a number where one record has room for all: a directory's files. */
const PART_NAME = /^members-[0-9a-f]{16}(?:\.\d{1,2})?\.json$/;

/** Parts of one server: 64 MB where a record has 1 MB. */
const PARTS_MAX = 64;

/** Parts of all servers that share a state. */
const READ_MAX = 32 * PARTS_MAX;

/**
 * What agents have announced, saved in a store: each server writes records of
 * its own and reads those of all servers that share the store, so that a new
 * one knows what its peers know. They are optional: a failure to read or write
 * is logged once.
 *
 * Where records have a limit, a server's agents are in several parts. Each part
 * is complete in itself: when an interrupted save has left an agent in two
 * parts, the later sighting counts.
 */
export class MemberRecords implements MemberMemory {
  /** Names of the records saved last; absent: others may have saved them. */
  #saved: readonly string[] | undefined;
  #warned: string | undefined;

  constructor(
    private readonly store: Store,
    private readonly serverId: string,
    private readonly log: Pick<Log, "warn">,
  ) {}

  async load(): Promise<readonly RememberedAgent[]> {
    const saved: RememberedAgent[] = [];
    try {
      const names = await this.store.list(PARTS);
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
      const { recordBytesMax } = this.store;
      const texts = partsOf(agents, recordBytesMax);
      const own = membersOf(this.serverId);
      const names = texts.map((_text, index) =>
        recordBytesMax === Infinity ? `${own}.json` : `${own}.${index}.json`
      );
      for (const [index, name] of names.entries()) {
        await this.store.transact((change) =>
          change.put(`${PARTS}/${name}`, texts[index]!)
        );
      }
      for (const name of this.#saved ?? await this.store.list(PARTS, own)) {
        if (names.includes(name)) continue;
        await this.store.transact((it) => it.remove(`${PARTS}/${name}`));
      }
      this.#saved = names;
      this.#warned = undefined;
    } catch (error) {
      this.#warn("keep what agents announce", error);
    }
  }

  async #read(key: string): Promise<readonly RememberedAgent[]> {
    try {
      const text = await this.store.look(key);
      if (text === undefined) return [];
      // Earlier versions have written a line of their own before it.
      return parseMembers(text.slice(text.indexOf("{")));
    } catch (error) {
      this.#warn(
        `use what agents announced by ${this.store.where(key)}`,
        error,
      );
      return [];
    }
  }

  #warn(what: string, error: unknown): void {
    // The store reports its own absence.
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
  // Room for the format around a list.
  const roomBytes = bytesMax - 200;
  const parts: RememberedAgent[][] = [];
  let bytes = 0;
  for (const agent of agents) {
    const size = encoder.encode(JSON.stringify(agent)).length + 1;
    if (parts.length === 0 || bytes + size > roomBytes) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)!.push(agent);
    bytes += size;
  }
  return parts.slice(0, PARTS_MAX).map(membersText);
}
