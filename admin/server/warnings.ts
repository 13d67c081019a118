/**
 * What an operator should look at although the server works: the first thing
 * that `tunnel status` says.
 *
 * @module
 */

import {
  allWarnings,
  code,
  fileWarnings,
  LATELY_MS,
} from "../../net/admin/own_facts.ts";
import type { Warning } from "../../proto/admin/status_answer.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import { stepOf } from "../../server/identity/authority_step.ts";
import { outageNotes } from "../../server/state/open_state.ts";
import { linkProblem } from "./node_problem.ts";
import type { NodeView, ViewedNode } from "./node_view.ts";
import type { ServerParts } from "../../server/assembly/server_admin_port.ts";

/** Limit for one kind; the rest is a number. */
export const WARNINGS_OF_KIND_MAX = 10;

/**
 * A node that was refused this often, and lately, has a problem, and keeps
 * trying.
 */
const REFUSED_TIMES = 3;
/** Agents that were told why they are refused try again once a minute. */
const REFUSED_MS = 150_000;

/** An operator has decided that, or is asked to: it is no problem. */
const DECIDED: ReadonlySet<string | undefined> = new Set(["TUN310", "TUN311"]);

/** Offline nodes that are named, the last to go first. */
const OFFLINE_MAX = 3;

/** Limit on repeated sentences of other programs. */
const TEXT_LENGTH_MAX = 400;

/** The worst first. */
export function warningsOf(
  facts: ServerParts,
  view: NodeView,
): readonly Warning[] {
  const { files, discovery, events } = facts;
  const own = [...ownWarnings(facts), ...fileWarnings(files.notes)];
  return allWarnings(own, discovery?.catalog.status, events, [
    ...stateWarnings(facts),
    ...peerWarnings(facts),
    ...refusedPeers(facts),
    ...nodeWarnings(facts, view),
    ...authorityWarning(facts, view),
  ]);
}

/** What the server says of itself as a whole. */
function* ownWarnings(parts: ServerParts): Iterable<Warning> {
  const { allowsAnonymous, conduits, timers } = parts;
  const problem = parts.problem();
  if (parts.program().isDraining) {
    yield {
      severity: "notice",
      message: "This server is stopping: connections go on, callers are " +
        "served, and agents and callers are sent elsewhere",
    };
  } else if (problem !== undefined) {
    yield {
      code: code("TUN501"),
      severity: "error",
      message: `This server is not ready: ${problem}; callers are refused ` +
        "until an agent is linked (tunnel node list)",
    };
  }
  const nowMs = timers.now();
  for (const { limit, scope, atMs, times } of parts.reachedLimits()) {
    if (nowMs - atMs > LATELY_MS) continue;
    yield {
      code: code("TUN409"),
      severity: "warning",
      message: `Too many ${limit.replace("_", " ")} of ` +
        (scope === "all" ? "all sources together" : "one source") +
        `: ${times} were refused or ended since the start, the last ` +
        `${Math.round((nowMs - atMs) / 1_000)} s ago; see ` +
        "tunnel_server_limits_reached_total",
    };
  }
  if (allowsAnonymous) {
    const { agents = "the agent port" } = parts.program().addresses;
    yield {
      code: code("TUN333"),
      severity: "notice",
      message: "Agents need no certificate: any program that can connect to " +
        `${agents} may become an agent and get connections`,
    };
  }
  const behind = conduits.latenessMs;
  if (behind < LATE_MS) return;
  yield {
    code: code("TUN421"),
    severity: "warning",
    message: `The server was busy for ${Math.round(behind)} ms at a stretch ` +
      "in the last seconds: it has too little processor time, or too much " +
      "to do; add a server, or --workers",
  };
}

/** A loop that is so late makes everybody wait. */
const LATE_MS = 250;

function* stateWarnings({ identity }: ServerParts): Iterable<Warning> {
  if (identity === undefined) return;
  const { outage } = identity.state;
  for (const message of outageNotes(identity.state)) {
    yield {
      code: code("TUN802"),
      severity: "error",
      message,
      since: outage && new Date(outage.sinceMs).toISOString(),
    };
  }
}

/** Clocks, ids and authorities of other servers. */
function* peerWarnings({ peers, timers }: ServerParts): Iterable<Warning> {
  for (const { kind, message, sinceMs } of peers.problems) {
    yield {
      code: code(
        kind === "other-clock"
          ? "TUN916"
          : kind === "duplicate-id"
          ? "TUN313"
          : "TUN205",
      ),
      severity: kind === "other-clock" ? "warning" : "error",
      message,
      since: new Date(Date.now() - (timers.now() - sinceMs)).toISOString(),
    };
  }
}

/** Nodes that try to link again and again, and why they are refused. */
function* refusedPeers({ events }: ServerParts): Iterable<Warning> {
  const often = events.repeated("refused", Date.now() - REFUSED_MS)
    .filter(({ event: { times = 1, code } }) =>
      times >= REFUSED_TIMES && !DECIDED.has(code)
    )
    .sort((a, b) => (b.event.times ?? 1) - (a.event.times ?? 1));
  for (const { event, since } of often.slice(0, WARNINGS_OF_KIND_MAX)) {
    yield {
      code: event.code ?? code("TUN320"),
      severity: "warning",
      message: `Refused ${event.times} times: ` +
        clipped(event.message, TEXT_LENGTH_MAX),
      since,
      node: event.node,
    };
  }
  yield* theRest(
    often.length,
    "peers that are refused; see tunnel_server_refused_agents_total",
  );
}

/** Stalled links, copied identities, nodes that wait. */
function* nodeWarnings(
  facts: ServerParts,
  { nodes, summaryOf }: NodeView,
): Iterable<Warning> {
  const duplicates = facts.duplicates();
  const still: ViewedNode[] = [];
  const offline: ViewedNode[] = [];
  let pending = 0;
  for (const node of nodes.values()) {
    if (node.state === "pending") pending++;
    if (node.state === "offline") offline.push(node);
    const [first] = node.links;
    if (first === undefined) continue;
    const copied = duplicates.get(first.peer.agentId);
    if (copied !== undefined) yield copiedWarning(node.name, copied);
    const isStill = node.links.every((link) =>
      !link.isDraining && !facts.registry.isUnwanted(link) &&
      !facts.registry.isHealthy(link)
    );
    if (isStill) still.push(node);
  }
  for (const node of still.slice(0, WARNINGS_OF_KIND_MAX)) {
    yield {
      code: code("TUN507"),
      severity: "warning",
      message: `Node ${node.name}: ${linkProblem(facts, node.links)}`,
      node: node.name,
    };
  }
  yield* theRest(still.length, "nodes that give no sign of life");
  if (pending > 0) {
    yield {
      code: code("TUN310"),
      severity: "notice",
      message: `${pending} ${pending === 1 ? "node waits" : "nodes wait"} ` +
        "for approval: tunnel node list, then tunnel node approve NAME",
    };
  }
  offline.sort((a, b) => goneMs(b) - goneMs(a));
  for (const node of offline.slice(0, OFFLINE_MAX)) {
    const { since, reason } = summaryOf(node);
    yield {
      code: code("TUN402"),
      severity: "warning",
      message: `Node ${node.name} is offline` +
        (reason === undefined ? "" : `: ${clipped(reason, TEXT_LENGTH_MAX)}`),
      since,
      node: node.name,
    };
  }
  const rest = offline.length - OFFLINE_MAX;
  if (rest > 0) {
    yield {
      severity: "warning",
      message: `… and ${rest} more ${rest === 1 ? "node is" : "nodes are"} ` +
        "offline: tunnel node list --only offline",
    };
  }
}

/** When it went; those that never came here stand last. */
export function goneMs({ past }: ViewedNode): number {
  return past === undefined || past.isLinked ? 0 : past.sinceMs;
}

/** A change of the CA is under way, and how far it is. */
function* authorityWarning(
  { identity }: ServerParts,
  { nodes }: NodeView,
): Iterable<Warning> {
  if (identity === undefined) return;
  const authorities = identity.authorities;
  if (authorities.next === undefined && authorities.previous === undefined) {
    return;
  }
  const records = [...nodes.values()].flatMap(({ joined }) => joined ?? []);
  const { concerned, lacking, done, command } = stepOf(authorities, records);
  const told = concerned.length - lacking.length;
  yield {
    code: code("TUN327"),
    severity: "notice",
    message: `The CA is being changed: ${told} of ${concerned.length} nodes ` +
      `${done}; next: ${command}` +
      (lacking.length === 0 ? "" : ", when all do (tunnel ca show)"),
  };
}

function copiedWarning(name: string, sinceMs: number): Warning {
  return {
    code: code("TUN313"),
    severity: "error",
    message: `Node ${name}: two machines use its identity, and each gets a ` +
      `part of its connections; tunnel node describe ${name} says from where`,
    since: new Date(sinceMs).toISOString(),
    node: name,
  };
}

/** How many more there are than were told. */
function* theRest(count: number, what: string): Iterable<Warning> {
  if (count <= WARNINGS_OF_KIND_MAX) return;
  yield {
    severity: "warning",
    message: `… and ${count - WARNINGS_OF_KIND_MAX} more ${what}`,
  };
}
