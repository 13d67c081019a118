/**
 * Nodes: the columns of a list, and all facts about one.
 *
 * @module
 */

import type { EventInfo } from "../../proto/admin/list_answers.ts";
import type { NodeDetail, NodeSummary } from "../../proto/admin/node_answer.ts";
import {
  counted,
  countText,
  millisText,
  rateText,
} from "../../platform/text/quantities.ts";
import {
  ageOf,
  type Column,
  column,
  type Fact,
  numbers,
  orDash,
  type Section,
  shellWord,
  stateCell,
  tableOf,
  whenText,
} from "./cells.ts";
import { conduitColumns } from "./conduits.ts";
import { linkTable } from "./links.ts";

interface NodeColumn extends Column<NodeSummary> {
  readonly isWide?: boolean;
}

/** All that is shown of one. */
export const NODE_COLUMNS: readonly NodeColumn[] = [
  column("NAME", ({ name }) => ({ text: name, to: { view: "nodes", name } }), {
    least: 12,
    order: ({ name }) => name,
  }),
  column("STATE", ({ state }) => stateCell(state), { order: nodeRank }),
  numbers("FOR", ({ since }, nowMs) => ageOf(since, nowMs), {
    order: ({ since }) => since,
  }),
  column("SINCE", ({ since }) => whenText(since), { isWide: true }),
  column("VERSION", ({ version = "-" }) => version, {
    rank: 8,
    least: 7,
    order: ({ version }) => version,
  }),
  column("ADDRESS NOW", ({ address = "-" }) => address, { rank: 5, least: 12 }),
  numbers("LINKS", ({ links }) => countText(links), {
    rank: 7,
    order: ({ links }) => links,
  }),
  numbers("RTT", ({ roundTripMs }) => orDash(roundTripMs, millisText), {
    rank: 4,
    order: ({ roundTripMs }) => roundTripMs,
  }),
  numbers("CONNS", ({ conduits }) => countText(conduits), {
    rank: 2,
    order: ({ conduits }) => conduits,
  }),
  numbers("RATE TO", ({ toTargetRate }) => rateText(toTargetRate), {
    rank: 6,
    order: ({ toTargetRate }) => toTargetRate,
  }),
  numbers("RATE FROM", ({ fromTargetRate }) => rateText(fromTargetRate), {
    rank: 6,
    order: ({ fromTargetRate }) => fromTargetRate,
  }),
  column("SERVERS", ({ servers }) => servers.join(",") || "-", {
    isWide: true,
  }),
  column(
    "CERTIFICATE UNTIL",
    ({ certificateUntil }) => whenText(certificateUntil),
    { isWide: true },
  ),
  column("PROBLEM", ({ problem, reason, isDuplicate }) =>
    problem ??
      (isDuplicate === true ? "two machines use its identity" : undefined) ??
      reason ?? "", { least: 10, rank: 3 }),
];

/** What needs attention first. */
function nodeRank({ state, problem, isDuplicate }: NodeSummary): number {
  if (state === "offline") return 0;
  if (state === "pending") return 1;
  if (state === "revoked") return 4;
  return isDuplicate || problem !== undefined ? 2 : 3;
}

/** Since when it has its present state, and why; `""`: neither is known. */
export function sinceText(
  { since, reason }: NodeSummary,
  nowMs: number,
): string {
  return [
    ...since === undefined
      ? []
      : [`for ${ageOf(since, nowMs)}, since ${whenText(since)}`],
    ...reason === undefined ? [] : [reason],
  ].join(": ");
}

/** The facts about a node. */
export function nodeFacts(node: NodeDetail): readonly Fact[] {
  const from = node.joinedFrom === undefined ? "" : ` from ${node.joinedFrom}`;
  const joined = node.isJoined
    ? `${whenText(node.joinedAt)}${from}`
    : "no, it is linked with a certificate or token of its own";
  const own = ["its name only"];
  return [
    { name: "version", value: node.version ?? "-" },
    { name: "address now", value: node.address ?? "-" },
    { name: "servers", value: node.servers },
    {
      name: "traffic",
      value: `${counted(node.conduits, "connection")}, ` +
        `${rateText(node.toTargetRate)} to targets, ` +
        `${rateText(node.fromTargetRate)} from them`,
    },
    { name: "joined", value: joined },
    { name: "certificate", value: `until ${whenText(node.certificateUntil)}` },
    { name: "may be", value: node.grants.length > 0 ? node.grants : own },
    {
      name: "says it is",
      value: node.identifiers.length > 0 ? node.identifiers : own,
    },
  ];
}

/** Its links, connections and services, and its events. */
export function nodeSections(
  node: NodeDetail,
  nowMs: number,
): readonly Section[] {
  return [
    linksSection(node, nowMs),
    conduitsSection(node),
    ...node.services.length === 0 ? [] : [announced(node.services)],
    ...node.events.length === 0 ? [] : [{
      heading: "Events",
      summary: "",
      table: tableOf(EVENT_COLUMNS, node.events, nowMs),
    }],
  ];
}

function linksSection(
  { linkDetails: links, state }: NodeDetail,
  nowMs: number,
): Section {
  if (links.length > 0) {
    return {
      heading: "Links",
      summary: countText(links.length),
      table: linkTable(links, nowMs),
    };
  }
  const summary = state === "online"
    ? "none here: other servers have it"
    : "none";
  return { heading: "Links", summary };
}

function conduitsSection(
  { name, conduits, conduitDetails: shown }: NodeDetail,
): Section {
  if (conduits === 0 && shown.length === 0) {
    return { heading: "Connected", summary: "none" };
  }
  const rest = conduits - shown.length;
  return {
    heading: "Connected",
    summary: counted(conduits, "connection"),
    table: tableOf(conduitColumns("few", shown), shown),
    more: rest > 0
      ? `${countText(rest)} more: tunnel conn list --node ${shellWord(name)}`
      : undefined,
  };
}

/** The announced services. */
export function announced(
  services: NodeDetail["services"],
  refused = "",
): Section {
  return {
    heading: "Announces",
    summary: counted(services.length, "service"),
    notes: services.map(({ name, problem }) => ({
      text: problem === undefined ? name : `${name}: ${refused}${problem}`,
    })),
  };
}

const EVENT_COLUMNS: readonly Column<EventInfo>[] = [
  numbers("AGO", ({ at }, nowMs) => ageOf(at, nowMs), { part: "value" }),
  column("KIND", ({ kind }) => kind, { part: "under" }),
  column(
    "EVENT",
    ({ message, times = 1, code }) =>
      (code === undefined ? "" : `${code} `) + message +
      (times > 1 ? ` (${countText(times)} times)` : ""),
    { least: 20, part: "name" },
  ),
];
