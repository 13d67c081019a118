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

/** An agent that announced something, and when it was last linked. */
export interface RememberedAgent {
  readonly id: string;
  /** The name that it proved; empty: none. */
  readonly node: string;
  readonly offers: readonly OfferedName[];
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
