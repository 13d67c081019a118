/**
 * What a program says of itself at a glance, for people: what needs attention
 * first, then what it has, then what expires.
 *
 * @module
 */

import type {
  Expiry,
  StatusAnswer,
  Traffic,
} from "../../proto/admin/status_answer.ts";
import { programName } from "../../proto/admin/program_name.ts";
import { columnsOf, cutToColumns } from "../../platform/text/columns.ts";
import {
  ageText,
  counted,
  countText,
  millisText,
  rateText,
} from "../../platform/text/quantities.ts";
import type { Page } from "./page.ts";
import { fittedTable, ofOthers } from "./text_table.ts";
import type { HistoryAnswer } from "../../proto/admin/history_answer.ts";
import { historyLines } from "./history_text.ts";
import { conduitLines } from "./conduit_text.ts";
import { linkLines } from "./link_text.ts";
import {
  ageOf,
  indented,
  section,
  sentenceLines,
  shellWord,
  warningLines,
  whenText,
} from "./sections.ts";

/** `tunnel status` of one program. */
export function statusText(
  page: Page,
  status: StatusAnswer & { readonly history?: HistoryAnswer },
): string {
  // Ages are by the clock of the machine that answered.
  const nowMs = Date.parse(status.program.now);
  return [
    ...headLines(page, status, nowMs),
    "",
    ...status.warnings.length === 0
      ? [page.paint("Nothing needs attention.", "good")]
      : warningLines(page, status.warnings, nowMs),
    ...serversSection(page, status),
    ...linksSection(page, status, nowMs),
    ...nodesSection(page, status, nowMs),
    ...announcedSection(page, status),
    ...servicesSection(page, status),
    ...conduitsSection(page, status),
    ...historyLines(page, status.history),
    ...discoverySection(page, status),
    ...expirySection(page, status.expiries, nowMs),
  ].join("\n") + "\n";
}

function headLines(
  page: Page,
  { program }: StatusAnswer,
  nowMs: number,
): string[] {
  const { program: kind, version, pid, worker, workers, addresses } = program;
  const [word, tone] = program.isDraining
    ? ["draining", "warn"] as const
    : program.isReady
    ? ["ready", "good"] as const
    : ["not ready", "bad"] as const;
  const facts = [
    `up ${ageOf(program.startedAt, nowMs)}`,
    `version ${ofOthers(version)}`,
    `pid ${pid}`,
    ...workers === undefined ? [] : [`worker ${worker} of ${workers}`],
  ];
  const name = `${kind} ${ofOthers(programName(program))}`;
  const where = Object.entries(addresses)
    .map(([use, address]) => `${use} ${address}`).join("  ");
  const state = `${name}  ${word}`;
  const whole = `${state}  ${facts.join(", ")}`;
  const isOne = columnsOf(whole) <= page.columns;
  const head = columnsOf(state) > page.columns
    ? page.paint(cutToColumns(state, page.columns), tone)
    : page.paint(name, "bold") + "  " + page.paint(word, tone);
  return [
    isOne ? `${head}  ${facts.join(", ")}` : head,
    ...isOne ? [] : sentenceLines(page, facts.join(", "), "  "),
    ...where === ""
      ? []
      : sentenceLines(page, where, "").map((line) => page.paint(line, "dim")),
  ];
}

function serversSection(page: Page, { servers = [] }: StatusAnswer): string[] {
  if (servers.length === 0) return [];
  const lines = fittedTable(
    [
      { heading: "SERVER", least: 8 },
      { heading: "ADDRESS", least: 12, rank: 2 },
      { heading: "AGENTS", side: "right" },
      { heading: "PROBLEM", least: 16, rank: 1 },
    ],
    servers.map(({ id, address, agents, problem = "" }) => [
      id,
      address,
      agents === undefined ? "-" : countText(agents),
      { text: problem, tone: "bad" },
    ]),
    indented(page, 2),
  );
  const ill = servers.filter(({ problem }) => problem !== undefined).length;
  return section(
    page,
    "Servers",
    `${counted(servers.length, "other")}, ${ill} with a problem`,
    lines.map((line) => `  ${line}`),
  );
}

function linksSection(
  page: Page,
  { links, program }: StatusAnswer,
  nowMs: number,
): string[] {
  if (
    links === undefined || (links.length === 0 && program.program !== "agent")
  ) {
    return [];
  }
  const linked = links.filter(({ state }) =>
    state === "linked" || state === "still" || state === "draining"
  );
  const servers = new Set(linked.map(({ peer }) => peer)).size;
  const summary = linked.length === 0
    ? "no server is linked"
    : `${countText(linked.length)} to ${counted(servers, "server")}`;
  return section(page, "Links", summary, linkLines(page, links, nowMs));
}

function nodesSection(
  page: Page,
  { nodes }: StatusAnswer,
  nowMs: number,
): string[] {
  if (nodes === undefined) return [];
  const { online, offline, pending, revoked, links, lastGone, slowest } = nodes;
  const summary = [
    `${countText(online)} online`,
    `${countText(offline)} offline`,
    ...pending > 0 ? [`${countText(pending)} pending`] : [],
    ...revoked > 0 ? [`${countText(revoked)} revoked`] : [],
    counted(links, "link"),
  ].join(", ");
  return section(page, "Nodes", summary, [
    ...goneLines(page, lastGone, offline, nowMs),
    ...slowLines(page, slowest),
  ]);
}

type Nodes = NonNullable<StatusAnswer["nodes"]>;

function goneLines(
  page: Page,
  gone: Nodes["lastGone"],
  offline: number,
  nowMs: number,
): string[] {
  if (gone.length === 0) return [];
  const lines = fittedTable(
    [
      { heading: "OFFLINE", least: 12 },
      { heading: "FOR", side: "right" },
      { heading: "SINCE", rank: 2 },
      { heading: "WHY", least: 12, rank: 1 },
    ],
    gone.map(({ name, since, reason = "" }) => [
      { text: name, tone: "bad" },
      ageOf(since, nowMs),
      whenText(since),
      reason,
    ]),
    indented(page, 2),
  );
  if (offline > gone.length) {
    const text = `${countText(offline - gone.length)} more: ` +
      "tunnel node list --only offline";
    lines.push(...sentenceLines(indented(page, 2), text, ""));
  }
  return lines.map((line) => `  ${line}`);
}

/** A slow node, why it is, and who is connected to it. */
function slowLines(page: Page, slowest: Nodes["slowest"]): string[] {
  return slowest.flatMap(
    ({ name, roundTripMs, why, conduits, callers = [] }) => {
      const time = roundTripMs === undefined
        ? ""
        : ` (${millisText(roundTripMs)})`;
      const label = `slow: ${ofOthers(name)}${time}`;
      const [first = "", ...rest] = sentenceLines(
        page,
        `${label}: ${why}`,
        "    ",
      );
      const said = first.trimStart();
      const head = `  ${page.paint(said.slice(0, label.length), "warn")}` +
        said.slice(label.length);
      const isMore = conduits !== undefined && conduits > callers.length;
      const connected = callers.length === 0
        ? conduits === undefined ? undefined : "nobody is connected to it"
        : `connected: ${callers.join(", ")}` +
          (isMore ? `; all ${countText(conduits)}: ` : "; more: ") +
          `tunnel node describe ${shellWord(name)}`;
      return [
        head,
        ...rest,
        ...connected === undefined
          ? []
          : sentenceLines(page, connected, "    "),
      ];
    },
  );
}

function announcedSection(page: Page, { announced }: StatusAnswer): string[] {
  if (announced === undefined || announced.length === 0) return [];
  const lines = announced.flatMap(({ name, problem }) =>
    sentenceLines(
      page,
      problem === undefined ? name : `${name}: refused: ${problem}`,
      "  ",
    )
  );
  return section(
    page,
    "Announces",
    counted(announced.length, "service"),
    lines,
  );
}

function servicesSection(page: Page, { services }: StatusAnswer): string[] {
  if (services === undefined) return [];
  const { ports, endpoints, endpointsInUse, problems } = services;
  const summary = `${counted(services.services, "service")}, ` +
    `${counted(ports, "port")}, ${countText(endpointsInUse)} of ` +
    `${counted(endpoints, "endpoint")} in use`;
  if (problems.length === 0) return section(page, "Services", summary);
  const lines = fittedTable(
    [
      { heading: "SERVICE", least: 10 },
      { heading: "ENDPOINT", least: 10, rank: 1 },
      { heading: "PROBLEM", least: 16 },
    ],
    problems.map(({ service, address = "", problem }) => [
      service,
      address,
      { text: problem, tone: "warn" },
    ]),
    indented(page, 2),
  );
  return section(page, "Services", summary, lines.map((line) => `  ${line}`));
}

function conduitsSection(
  page: Page,
  { traffic, top = [] }: StatusAnswer,
): string[] {
  const lines = top.length === 0
    ? []
    : conduitLines(indented(page, 2), top, "few");
  if (top.length > 0 && traffic.conduits > top.length) {
    const text = `${countText(traffic.conduits - top.length)} more: ` +
      "tunnel conn list, tunnel top";
    lines.push(...sentenceLines(indented(page, 2), text, ""));
  }
  return section(
    page,
    "Connections",
    trafficText(traffic),
    lines.map((line) => `  ${line}`),
  );
}

/** The same where there is little room. */
export function briefTraffic(traffic: Traffic): string {
  return trafficText({ ...traffic, dialP50Ms: undefined, failedDials: 0 })
    .replace("from them", "from");
}

/** What passes, in one sentence. */
function trafficText(
  traffic: Omit<Traffic, "dialP50Ms"> & {
    readonly dialP50Ms?: number | undefined;
  },
): string {
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
    `${dialRate < 10 ? dialRate.toFixed(1) : countText(dialRate)} dials/s` +
    took,
    ...failedDials > 0 ? [`${countText(failedDials)} failed`] : [],
  ].join(", ");
}

function discoverySection(page: Page, status: StatusAnswer): string[] {
  const { discovery, sources = [], follows } = status;
  const lines = sources.flatMap(({ name, isSynced, problem }) => {
    const state = problem ?? (isSynced ? "read" : "not read yet");
    return sentenceLines(page, `source ${name}: ${state}`, "  ");
  });
  if (follows !== undefined) {
    const { state, server, problem, waiting, recalledFrom } = follows;
    const text = state === "following"
      ? `follows ${server ?? "a server"}`
      : `follows no server (${state})${
        problem === undefined ? "" : `: ${problem}`
      }`;
    lines.push(...sentenceLines(page, text, "  "));
    if (waiting > 0) {
      const text = `${counted(waiting, "service")} of which a part is missing`;
      lines.push(...sentenceLines(page, text, "  "));
    }
    if (recalledFrom !== undefined) {
      const text = `what is served was kept at ${whenText(recalledFrom)}`;
      lines.push(...sentenceLines(page, text, "  "));
    }
  }
  if (discovery === undefined && lines.length === 0) return [];
  const summary = discovery === undefined
    ? ""
    : `${counted(discovery.clients, "client")}, ` +
      `${countText(discovery.inSync)} in sync` +
      (discovery.refused > 0
        ? `, ${countText(discovery.refused)} refused: tunnel xds status`
        : "");
  const heading = discovery === undefined && follows === undefined
    ? "Sources"
    : "Discovery";
  return section(page, heading, summary, lines);
}

function expirySection(
  page: Page,
  expiries: readonly Expiry[],
  nowMs: number,
): string[] {
  if (expiries.length === 0) return [];
  const lines = fittedTable(
    [
      { heading: "IN", side: "right" },
      { heading: "WHAT", least: 12 },
      { heading: "AT", rank: 2 },
      { heading: "RENEWED", rank: 1 },
    ],
    expiries.map(({ what, at, renewal }) => [
      expiryCell(Date.parse(at) - nowMs, renewal),
      what,
      whenText(at),
      renewal,
    ]),
    indented(page, 2),
  );
  return section(
    page,
    "Expires",
    "what is next",
    lines.map((line) => `  ${line}`),
  );
}

/** What nobody renews by itself should be seen for so long. */
const BY_HAND_SOON_MS = 14 * 24 * 3_600_000;

function expiryCell(leftMs: number, renewal: Expiry["renewal"]) {
  const text = leftMs <= 0 ? "expired" : ageText(leftMs);
  if (leftMs <= 0) return { text, tone: "bad" } as const;
  return renewal === "by hand" && leftMs < BY_HAND_SOON_MS
    ? { text, tone: "warn" } as const
    : text;
}
