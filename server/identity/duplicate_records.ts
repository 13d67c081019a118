/**
 * Records of nodes whose identity was seen twice, for `tunnel node list`: one
 * for each in the state, `duplicates/NAME.json`, written by the server that
 * sees it. It stays until an operator has handled the node. No decision depends
 * on it: the node's own record decides about links.
 *
 * @module
 */

import { nodeOfFile } from "./node_store.ts";
import type { Store } from "../../neighbours/store/store.ts";
import type { Log } from "../../platform/log/log.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import type {
  Duplicate,
  DuplicateInstance,
  DuplicatesOptions,
} from "../links/duplicates.ts";
import { SaidOnce } from "../links/authorizer.ts";
import { counted, shownGauge } from "../metrics/metric_families.ts";

const FOLDER = "duplicates";

/** A server writes each of them again this often while it lasts. */
export const REWRITTEN_MS = 60_000;

/** Times are ISO 8601, UTC. */
export interface DuplicateRecord {
  readonly node: string;
  readonly since: string;
  readonly lastSeen: string;
  /** Only one was left then. */
  readonly isOver: boolean;
  readonly instances: readonly {
    readonly address: string;
    readonly instance: string;
    readonly since: string;
  }[];
}

/** The records of a state. */
export class DuplicateRecords {
  constructor(private readonly state: Store) {}

  async write(record: DuplicateRecord): Promise<void> {
    const text = JSON.stringify(record, null, 2) + "\n";
    await this.state.transact((change) => change.put(keyOf(record.node), text));
  }

  /** A person has dealt with the node. */
  async remove(node: string): Promise<void> {
    // Usually there is no record, and nothing to wait for.
    if (await this.state.look(keyOf(node)) === undefined) return;
    await this.state.transact((change) => change.remove(keyOf(node)));
  }

  /** Records of all nodes that have one; an unreadable one is left out. */
  async list(): Promise<ReadonlyMap<string, DuplicateRecord>> {
    const found = new Map<string, DuplicateRecord>();
    for (const file of await this.state.list(FOLDER)) {
      const node = nodeOfFile(file);
      if (node === undefined) continue;
      try {
        const text = await this.state.look(keyOf(node));
        const record = JSON.parse(text ?? "null") as
          | Partial<DuplicateRecord>
          | null;
        if (isWhole(record)) found.set(node, record);
      } catch {
        // Removed just now, or not ours: a list goes without it.
      }
    }
    return found;
  }
}

function keyOf(node: string): string {
  return `${FOLDER}/${node}.json`;
}

/** Whether it was so a moment ago, as far as the server could say. */
export function isNow(
  { isOver, lastSeen }: DuplicateRecord,
  nowMs: number,
): boolean {
  return !isOver && nowMs - Date.parse(lastSeen) < 2 * REWRITTEN_MS + 10_000;
}

function isWhole(
  record: Partial<DuplicateRecord> | null,
): record is DuplicateRecord {
  const { since, lastSeen, isOver, instances } = record ?? {};
  return !Number.isNaN(Date.parse(since ?? "")) &&
    !Number.isNaN(Date.parse(lastSeen ?? "")) &&
    typeof isOver === "boolean" && Array.isArray(instances) &&
    instances.every((one) =>
      typeof one?.address === "string" && typeof one.instance === "string"
    );
}

// The log lines, counts and records of copied identities.

/** One that comes and goes is not logged again and again. */
const WARNED_AGAIN_MS = 600_000;

/** Processes that are named in a sentence. */
const NAMED_MAX = 4;

/** Longest name of an agent that is quoted. */
const NAME_LENGTH_MAX = 253;

/** What is needed from outside. */
export interface DuplicateReportsOptions {
  readonly log: Pick<Log, "warn" | "event">;
  readonly metrics: MetricRegistry;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  /** The number of agents with two live processes now. */
  readonly count: () => number;
  /** The joined node that an agent is; `undefined` for other agents. */
  readonly nodeOf: (peer: LinkPeer) => string | undefined;
  /** Keeps it where `tunnel node list` finds it. */
  readonly keep: (record: DuplicateRecord) => void;
}

/** Makes what `Duplicates` reports to. */
export function duplicateReports(
  options: DuplicateReportsOptions,
): DuplicatesOptions["observer"] {
  const { log, metrics, wallClock, nodeOf } = options;
  shownGauge(
    metrics,
    "duplicate_identities",
    "Agents that two live processes speak for now, with one key.",
    options.count,
  );
  const found = counted(
    metrics,
    "duplicate_identities",
    "Times that an agent was found to be two live processes with one key.",
  );
  const refused = counted(
    metrics,
    "duplicate_identities_refused",
    "Links that were refused for another live process with the same key.",
  );
  const said = new SaidOnce(wallClock, WARNED_AGAIN_MS);
  const warnOnce = (agentId: string, message: string) => {
    if (said.isNew(agentId)) log.warn(message, { code: "TUN313" });
  };
  const keep = (duplicate: Duplicate, isOver: boolean) => {
    const node = nodeOf(duplicate.peer);
    if (node === undefined) return;
    options.keep(recordOf(node, duplicate, isOver, wallClock()));
  };
  return {
    found: (duplicate) => {
      found();
      keep(duplicate, false);
      const message = sentence(duplicate, nodeOf(duplicate.peer));
      warnOnce(duplicate.peer.agentId, message);
      return message;
    },
    lasts: (duplicate) => keep(duplicate, false),
    over: (duplicate) => {
      keep(duplicate, true);
      log.event("no second process speaks for the agent any more", {
        agent: duplicate.peer.agentId.slice(0, NAME_LENGTH_MAX),
      });
    },
    refused: (others, late) => {
      refused();
      const { peer, instances } = others;
      const node = nodeOf(peer);
      keep({ ...others, instances: [...instances, late] }, true);
      warnOnce(
        peer.agentId,
        `refused a second process that speaks for agent ${quoted(peer)} with ` +
          `its key, ${placesOf([late])}, beside the one ` +
          `${placesOf(instances)}; ${adviceFor(node)}`,
      );
      return `Cannot admit this agent as ${quoted(peer)}: another process ` +
        `that lives has the same key and name, ${placesOf(instances)}; ` +
        `${adviceFor(node)} (the server runs with --duplicate-identity=refuse)`;
    },
  };
}

function sentence(
  { peer, instances }: Duplicate,
  node: string | undefined,
): string {
  return `agent ${quoted(peer)} is linked by ${instances.length} processes ` +
    `with one key, ${placesOf(instances)}: its identity was copied, and each ` +
    `gets a part of its connections; ${adviceFor(node)}`;
}

function adviceFor(node: string | undefined): string {
  if (node === undefined) {
    return "if the key may be stolen, replace its certificate and take the " +
      "old one out of trust; if a machine was cloned, or two agents share a " +
      "certificate, give each a certificate and an --agent-id of its own";
  }
  return `if the key may be stolen, \`tunnel node revoke ${node}\` on the ` +
    "server; if a machine was cloned, stop its agent, empty the agent's " +
    "--state-dir there, and join by another name (`tunnel token create` on " +
    "the server, `tunnel join TOKEN --node NAME` there); two agents on one " +
    "machine need a --state-dir each";
}

function placesOf(instances: readonly DuplicateInstance[]): string {
  const named = instances.slice(0, NAMED_MAX).map((one) => {
    const id = one.instance === "" ? "" : `instance ${one.instance}, `;
    return `from ${one.address} (${id}since ${iso(one.sinceMs)})`;
  });
  const more = instances.length - named.length;
  return named.join(" and ") + (more > 0 ? ` and ${more} more` : "");
}

function recordOf(
  node: string,
  { sinceMs, instances }: Duplicate,
  isOver: boolean,
  nowMs: number,
): DuplicateRecord {
  return {
    node,
    since: iso(sinceMs),
    lastSeen: iso(nowMs),
    isOver,
    instances: instances.slice(0, NAMED_MAX).map((one) => ({
      address: one.address,
      instance: one.instance,
      since: iso(one.sinceMs),
    })),
  };
}

function quoted({ agentId }: LinkPeer): string {
  return JSON.stringify(agentId.slice(0, NAME_LENGTH_MAX));
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
