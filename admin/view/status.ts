/**
 * A program's report about itself at a glance: the sections, their order and
 * their content. Warnings come before all sections.
 *
 * @module
 */

import type { HistoryAnswer } from "../../proto/admin/list_answers.ts";
import type {
  Expiry,
  ProgramInfo,
  StatusAnswer,
  Traffic,
} from "../../proto/admin/status_answer.ts";
import {
  ageText,
  counted,
  countText,
  millisText,
  rateText,
} from "../../platform/text/quantities.ts";
import {
  ageOf,
  anyTable,
  type Cell,
  type Column,
  column,
  type Fact,
  type Note,
  numbers,
  orDash,
  type Section,
  shellWord,
  tableOf,
  whenText,
} from "./cells.ts";
import { conduitColumns } from "./conduits.ts";
import { historySections } from "./history.ts";
import { linkTable } from "./links.ts";
import { announced } from "./nodes.ts";

/** An answer, and what passed before it. */
export type Shown = StatusAnswer & { readonly history?: HistoryAnswer };

type Part<Name extends keyof StatusAnswer> = NonNullable<StatusAnswer[Name]>;
type Row<List> = List extends readonly (infer One)[] ? One : never;

/** All of them, in the order in which they are read. */
export function statusSections(
  status: Shown,
  nowMs: number,
): readonly Section[] {
  const { servers = [], nodes, announced: services = [], expiries } = status;
  return [
    ...servers.length === 0 ? [] : [serversSection(servers)],
    ...linksSections(status, nowMs),
    ...nodes === undefined ? [] : [nodesSection(nodes, nowMs)],
    ...services.length === 0 ? [] : [announced(services, "refused: ")],
    ...status.services === undefined ? [] : [servicesSection(status.services)],
    conduitsSection(status),
    ...historySections(status.history),
    ...discoverySections(status),
    ...expiries.length === 0 ? [] : [expirySection(expiries, nowMs)],
  ];
}

/** Whether it serves. */
export function programState(
  { isDraining, isReady }: ProgramInfo,
): "draining" | "ready" | "not ready" {
  return isDraining ? "draining" : isReady ? "ready" : "not ready";
}

/** Which process it is. */
export function programFacts(
  { startedAt, now, version, pid, worker, workers }: ProgramInfo,
): readonly Fact[] {
  return [
    { name: "up", value: ageOf(startedAt, Date.parse(now)) },
    { name: "version", value: version },
    { name: "pid", value: `${pid}` },
    ...workers === undefined
      ? []
      : [{ name: "worker", value: `${worker} of ${workers}` }],
  ];
}

function serversSection(servers: Part<"servers">): Section {
  const ill = servers.filter(({ problem }) => problem !== undefined).length;
  return {
    heading: "Servers",
    summary: `${counted(servers.length, "other")}, ${ill} with a problem`,
    table: tableOf(SERVERS, servers),
  };
}

const SERVERS: readonly Column<Row<Part<"servers">>>[] = [
  column("SERVER", ({ id }) => id, { least: 8, part: "name" }),
  column("ADDRESS", ({ address }) => address, {
    least: 12,
    rank: 2,
    part: "under",
  }),
  numbers("AGENTS", ({ agents }) => orDash(agents, countText), {
    part: "value",
    unit: "agents",
  }),
  column("PROBLEM", ({ problem = "" }) => ({ text: problem, tone: "bad" }), {
    least: 16,
    rank: 1,
    part: "under",
  }),
];

function linksSections(
  { links, program }: StatusAnswer,
  nowMs: number,
): readonly Section[] {
  const isLinking = links !== undefined &&
    (links.length > 0 || program.program === "agent");
  if (!isLinking) return [];
  const linked = links.filter(({ state }) =>
    state === "linked" || state === "still" || state === "draining"
  );
  const servers = new Set(linked.map(({ peer }) => peer)).size;
  const summary = linked.length === 0
    ? "no server is linked"
    : `${countText(linked.length)} to ${counted(servers, "server")}`;
  return [{ heading: "Links", summary, table: linkTable(links, nowMs) }];
}

type Nodes = Part<"nodes">;

function nodesSection(nodes: Nodes, nowMs: number): Section {
  const { online, offline, pending, revoked, links, lastGone: gone } = nodes;
  return {
    heading: "Nodes",
    place: { view: "nodes", state: "offline" },
    summary: [
      `${countText(online)} online`,
      `${countText(offline)} offline`,
      ...pending > 0 ? [`${countText(pending)} pending`] : [],
      ...revoked > 0 ? [`${countText(revoked)} revoked`] : [],
      counted(links, "link"),
    ].join(", "),
    table: anyTable(GONE, gone, nowMs),
    more: gone.length > 0 && offline > gone.length
      ? `${countText(offline - gone.length)} more: ` +
        "tunnel node list --only offline"
      : undefined,
    notes: nodes.slowest.map(slowNote),
  };
}

const GONE: readonly Column<Row<Nodes["lastGone"]>>[] = [
  column("OFFLINE", ({ name }) => ({
    text: name,
    tone: "bad",
    to: { view: "nodes", name },
  }), { least: 12, part: "name" }),
  numbers("FOR", ({ since }, nowMs) => ageOf(since, nowMs), { part: "value" }),
  column("SINCE", ({ since }) => whenText(since), { rank: 2 }),
  column("WHY", ({ reason = "" }) => reason, {
    least: 12,
    rank: 1,
    part: "under",
  }),
];

/** A slow node, its cause, and its callers. */
function slowNote(
  { name, roundTripMs, why, conduits, callers = [] }: Row<Nodes["slowest"]>,
): Note {
  const time = roundTripMs === undefined ? "" : ` (${millisText(roundTripMs)})`;
  const isMore = conduits !== undefined && conduits > callers.length;
  const below = callers.length === 0
    ? conduits === undefined ? undefined : "no client is connected to it"
    : `connected: ${callers.join(", ")}` +
      (isMore ? `; all ${countText(conduits)}: ` : "; more: ") +
      `tunnel node describe ${shellWord(name)}`;
  return {
    label: { text: `slow: ${name}${time}`, tone: "warn" },
    text: why,
    node: name,
    below,
  };
}

function servicesSection(
  { services, ports, endpoints, endpointsInUse, problems }: Part<"services">,
): Section {
  return {
    heading: "Services",
    summary: `${counted(services, "service")}, ` +
      `${counted(ports, "port")}, ${countText(endpointsInUse)} of ` +
      `${counted(endpoints, "endpoint")} in use`,
    table: anyTable(PROBLEMS, problems),
  };
}

const PROBLEMS: readonly Column<Row<Part<"services">["problems"]>>[] = [
  column("SERVICE", ({ service }) => service, { least: 10, part: "name" }),
  column("ENDPOINT", ({ address = "" }) => address, {
    least: 10,
    rank: 1,
    part: "under",
  }),
  column("PROBLEM", ({ problem }) => ({ text: problem, tone: "warn" }), {
    least: 16,
    part: "under",
  }),
];

function conduitsSection({ traffic, top = [] }: StatusAnswer): Section {
  const rest = traffic.conduits - top.length;
  return {
    heading: "Connections",
    summary: trafficText(traffic),
    place: { view: "conduits" },
    table: anyTable(conduitColumns("few", top), top),
    more: top.length > 0 && rest > 0
      ? `${countText(rest)} more: tunnel conn list, tunnel top`
      : undefined,
  };
}

/** The same where there is little room. */
export function briefTraffic(traffic: Traffic): string {
  const { dialP50Ms: _, ...rest } = traffic;
  return trafficText({ ...rest, failedDials: 0 }).replace("from them", "from");
}

/** What passes, in one sentence. */
function trafficText(traffic: Traffic): string {
  const { dialP50Ms, dialP99Ms, dialRate, failedDials } = traffic;
  const took = dialP50Ms === undefined || dialP99Ms === undefined
    ? ""
    : ` (half in ${millisText(dialP50Ms)}, 99% in ${millisText(dialP99Ms)})`;
  return [
    counted(traffic.conduits, "connection") +
    (traffic.pendingDials > 0
      ? `, ${countText(traffic.pendingDials)} dialing`
      : ""),
    `${rateText(traffic.toTargetRate)} to targets`,
    `${rateText(traffic.fromTargetRate)} from them`,
    `${perSecond(dialRate)} dials/s${took}`,
    ...failedDials > 0 ? [`${countText(failedDials)} failed`] : [],
  ].join(", ");
}

/** `0.5`, `412`. */
export function perSecond(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : countText(rate);
}

function discoverySections(
  { discovery, sources = [], follows }: StatusAnswer,
): readonly Section[] {
  const notes: Note[] = [
    ...sources.map(({ name, isSynced, problem }) => ({
      text: `source ${name}: ${
        problem ?? (isSynced ? "read" : "not read yet")
      }`,
    })),
    ...follows === undefined ? [] : followNotes(follows),
  ];
  if (discovery === undefined && notes.length === 0) return [];
  const isDiscovery = discovery !== undefined || follows !== undefined;
  return [{
    heading: isDiscovery ? "Discovery" : "Sources",
    summary: discovery === undefined
      ? ""
      : `${counted(discovery.clients, "client")}, ` +
        `${countText(discovery.inSync)} in sync` +
        (discovery.refused > 0
          ? `, ${countText(discovery.refused)} refused: tunnel xds status`
          : ""),
    place: discovery && { view: "discovery" },
    notes,
  }];
}

function followNotes(
  { state, server, problem, recalledFrom }: Part<"follows">,
): readonly Note[] {
  const why = problem === undefined ? "" : `: ${problem}`;
  return [
    {
      text: state === "following"
        ? `follows ${server ?? "a server"}`
        : `follows no server (${state})${why}`,
    },
    ...recalledFrom === undefined
      ? []
      : [{ text: `the served state was saved at ${whenText(recalledFrom)}` }],
  ];
}

function expirySection(expiries: readonly Expiry[], nowMs: number): Section {
  return {
    heading: "Expires",
    summary: "what is next",
    place: { view: "certificates" },
    table: tableOf(EXPIRIES, expiries, nowMs),
  };
}

const EXPIRIES: readonly Column<Expiry>[] = [
  numbers("IN", ({ at, renewal }, nowMs) => expiryCell(at, renewal, nowMs), {
    part: "value",
  }),
  column("WHAT", ({ what }) => what, { least: 12, part: "name" }),
  column("AT", ({ at }) => whenText(at), { rank: 2 }),
  column("RENEWED", ({ renewal }) => renewal, { rank: 1, part: "under" }),
];

/**
 * A certificate without automatic renewal is shown this long before its end.
 */
const BY_HAND_SOON_MS = 14 * 24 * 3_600_000;

/** How long something is still good. */
export function expiryCell(
  at: string,
  renewal: Expiry["renewal"],
  nowMs: number,
): Cell {
  const leftMs = Date.parse(at) - nowMs;
  if (leftMs <= 0) return { text: "expired", tone: "bad" };
  const text = ageText(leftMs);
  return renewal === "by hand" && leftMs < BY_HAND_SOON_MS
    ? { text, tone: "warn" }
    : text;
}
