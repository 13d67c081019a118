/**
 * What agents have announced, saved in the server's state directory: a server that
 * has just started knows which agents to wait for, and removes no service whose
 * agents are about to reconnect.
 *
 * Each server writes a file of its own and reads those of all servers that share
 * the directory, so that a new one knows what its peers know. The files are
 * optional: a file that cannot be read or written is logged once.
 *
 * @module
 */

import type { Protocol } from "../../../services/catalog/model/model.ts";
import { replaceFile } from "../../../platform/files/atomic_file.ts";
import { systemProblem } from "../../../platform/files/file_error.ts";
import { sha256Hex } from "../../../platform/pki/key_pair.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { Offer } from "./announcement.ts";

/** An agent that announced something, and when it was last linked. */
export interface RememberedAgent {
  readonly id: string;
  /** The name that it proved; empty: none. */
  readonly node: string;
  readonly offers: readonly Offer[];
  /** Milliseconds since 1970. */
  readonly seenMs: number;
  /** Absent: it had no link then, or the server that saved it did not say. */
  readonly state?: "ready" | "serving";
}

/** Where `MembershipSource` saves agents. */
export interface MemberMemory {
  load(): Promise<readonly RememberedAgent[]>;
  /** Never rejects. */
  save(agents: readonly RememberedAgent[]): Promise<void>;
}

const FORMAT = "tunnel-members";
const VERSION = 1;
const FILE = /^members-[0-9a-f]{16}\.json$/;
/** Files of servers that share a directory. */
const FILES_MAX = 32;
/** Of one file; ten thousand agents with ten services each have 15 MB. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** See the module description. */
export class MemberFiles implements MemberMemory {
  /** This server's own. */
  readonly #path: string;
  #warned: string | undefined;

  /** @param folder Made when it is missing. */
  constructor(
    private readonly folder: string,
    serverId: string,
    private readonly log: Log,
  ) {
    this.#path = `${folder}/${membersOf(serverId)}.json`;
  }

  async load(): Promise<readonly RememberedAgent[]> {
    const saved: RememberedAgent[] = [];
    for (const path of await this.#files()) {
      saved.push(...await this.#read(path));
    }
    return latestOf(saved);
  }

  async save(agents: readonly RememberedAgent[]): Promise<void> {
    try {
      await Deno.mkdir(this.folder, { recursive: true, mode: 0o700 });
      await replaceFile(this.#path, membersText(agents));
      this.#warned = undefined;
    } catch (error) {
      this.#warn(`Cannot keep what agents announce in ${this.#path}`, error);
    }
  }

  /** Those of all servers, its own too. */
  async #files(): Promise<readonly string[]> {
    const found: string[] = [];
    try {
      for await (const { name, isFile } of Deno.readDir(this.folder)) {
        if (isFile && FILE.test(name)) found.push(`${this.folder}/${name}`);
      }
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      this.#warn(`Cannot read ${this.folder}`, error);
    }
    return found.sort().slice(0, FILES_MAX);
  }

  async #read(path: string): Promise<readonly RememberedAgent[]> {
    try {
      const { size } = await Deno.stat(path);
      if (size > FILE_BYTES_MAX) throw new Error(`it has ${size} bytes`);
      return parseMembers(await Deno.readTextFile(path));
    } catch (error) {
      this.#warn(`Cannot use what agents announced by ${path}`, error);
      return [];
    }
  }

  #warn(what: string, error: unknown): void {
    const line = `${what}: ${systemProblem(error)}; agents announce it again`;
    if (line !== this.#warned) this.log.warn(line, { code: "TUN905" });
    this.#warned = line;
  }
}

/** Of several servers that saved an agent, what the last one to see it says. */
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

/** Of all servers: which of them has saved something. */
export function membersOf(serverId: string): string {
  return `members-${
    sha256Hex(new TextEncoder().encode(serverId)).slice(0, 16)
  }`;
}

/** How agents are saved. */
export function membersText(agents: readonly RememberedAgent[]): string {
  return JSON.stringify({ format: FORMAT, version: VERSION, agents }) + "\n";
}

/** @throws {Error} When it is nothing of that kind. */
export function parseMembers(text: string): RememberedAgent[] {
  const found = Object(JSON.parse(text));
  if (found.format !== FORMAT || found.version !== VERSION) {
    throw new Error(`it is not of version ${VERSION}`);
  }
  return agentsOf(found.agents);
}

/**
 * Agents as somebody has saved them.
 *
 * @throws {Error} When they are none.
 */
export function agentsOf(list: unknown): RememberedAgent[] {
  if (!Array.isArray(list) || !list.every(isAgent)) {
    throw new Error("it names no agents");
  }
  return list.map(({ id, node, offers, seenMs, state }) => ({
    ...{ id, node, seenMs },
    ...state === "ready" || state === "serving" ? { state } : {},
    offers: Object.freeze(offers.map(offerOf)),
  }));
}

function isAgent(found: unknown): found is RememberedAgent {
  const { id, node, offers, seenMs } = Object(found);
  return typeof id === "string" && typeof node === "string" &&
    Number.isFinite(seenMs) && Array.isArray(offers) && offers.every(isOffer);
}

function isOffer(found: unknown): found is Offer {
  const offer = Object(found);
  const texts = ["service", "namespace", "name", "appProtocol", "address"];
  return texts.every((name) => typeof offer[name] === "string") &&
    Number.isInteger(offer.port) && Number.isInteger(offer.targetPort) &&
    (offer.protocol === "tcp" || offer.protocol === "udp") &&
    offer.service === `${offer.namespace}/${offer.name}`;
}

function offerOf(offer: Offer): Offer {
  const { service, namespace, name, port, appProtocol } = offer;
  const { address, targetPort } = offer;
  const protocol: Protocol = offer.protocol;
  return Object.freeze({
    ...{ service, namespace, name, port, protocol },
    ...{ appProtocol, address, targetPort },
  });
}
