/**
 * What is logged, counted and recorded of identities that were copied.
 *
 * @module
 */

import type { Log } from "../../platform/log/log.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import type { DuplicateRecord } from "./duplicate_records.ts";
import type {
  Duplicate,
  DuplicateInstance,
  DuplicatesOptions,
} from "../links/duplicates.ts";
import { SaidOnce } from "../links/authorizer.ts";
import { counted, shownGauge } from "../metrics/metric_families.ts";

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
  /** How many agents there are that two processes speak for now. */
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
