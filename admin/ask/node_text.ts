/**
 * Nodes for people: one in a row, and all that is known of one.
 *
 * @module
 */

import type {
  NodeDetail,
  NodesAnswer,
  NodeSummary,
} from "../../proto/admin/node_answer.ts";
import type { EventInfo } from "../../proto/admin/event_answer.ts";
import { cutToColumns } from "../../platform/text/columns.ts";
import {
  counted,
  countText,
  millisText,
  rateText,
} from "../../platform/text/quantities.ts";
import type { Page, Tone } from "./page.ts";
import { type Cell, type Column, fittedTable, ofOthers } from "./text_table.ts";
import { conduitLines } from "./conduit_text.ts";
import { linkLines } from "./link_text.ts";
import {
  ageOf,
  dimLines,
  indented,
  section,
  sentenceLines,
  shellWord,
  warningLines,
  whenText,
} from "./sections.ts";

interface NodeColumn extends Column {
  readonly of: (node: NodeSummary, nowMs: number) => Cell;
  readonly isWide?: boolean;
}

const STATE_TONES: Readonly<Record<NodeSummary["state"], Tone>> = {
  online: "good",
  offline: "bad",
  pending: "warn",
  revoked: "dim",
};

const COLUMNS: readonly NodeColumn[] = [
  { heading: "NAME", least: 12, of: ({ name }) => name },
  {
    heading: "STATE",
    of: ({ state }) => ({ text: state, tone: STATE_TONES[state] ?? "warn" }),
  },
  {
    heading: "FOR",
    side: "right",
    of: ({ since }, nowMs) => ageOf(since, nowMs),
  },
  {
    heading: "SINCE",
    isWide: true,
    of: ({ since }) => whenText(since),
  },
  {
    heading: "VERSION",
    rank: 8,
    least: 7,
    of: ({ version = "-" }) => version,
  },
  {
    heading: "ADDRESS NOW",
    rank: 5,
    least: 12,
    of: ({ address = "-" }) => address,
  },
  {
    heading: "LINKS",
    side: "right",
    rank: 7,
    of: ({ links }) => countText(links),
  },
  {
    heading: "RTT",
    side: "right",
    rank: 4,
    of: ({ roundTripMs }) =>
      roundTripMs === undefined ? "-" : millisText(roundTripMs),
  },
  {
    heading: "CONNS",
    side: "right",
    rank: 2,
    of: ({ conduits }) => countText(conduits),
  },
  {
    heading: "RATE TO",
    side: "right",
    rank: 6,
    of: ({ toTargetRate }) => rateText(toTargetRate),
  },
  {
    heading: "RATE FROM",
    side: "right",
    rank: 6,
    of: ({ fromTargetRate }) => rateText(fromTargetRate),
  },
  {
    heading: "SERVERS",
    isWide: true,
    of: ({ servers }) => servers.join(",") || "-",
  },
  {
    heading: "CERTIFICATE UNTIL",
    isWide: true,
    of: ({ certificateUntil }) => whenText(certificateUntil),
  },
  {
    heading: "PROBLEM",
    least: 10,
    rank: 3,
    of: ({ problem, reason, isDuplicate }) =>
      problem ??
        (isDuplicate === true ? "two machines use its identity" : undefined) ??
        reason ?? "",
  },
];

/** `tunnel node list`. */
export function nodesText(
  page: Page,
  { nodes, total }: NodesAnswer,
  { isWide, nowMs }: { readonly isWide: boolean; readonly nowMs: number },
): string {
  if (total === 0) {
    return "No nodes. tunnel token create --node NAME prints the line that " +
      "makes one join.\n";
  }
  const columns = COLUMNS.filter((column) => isWide || !column.isWide);
  const rows = nodes.map((node) => columns.map(({ of }) => of(node, nowMs)));
  const lines = fittedTable(columns, rows, page);
  if (nodes.length < total) {
    const text = `${countText(nodes.length)} of ${counted(total, "node")}`;
    lines.push(...dimLines(page, text));
  }
  return `${lines.join("\n")}\n`;
}

/** `tunnel node describe NAME`. */
export function nodeText(page: Page, node: NodeDetail, nowMs: number): string {
  return [
    ...headLines(page, node, nowMs),
    // What tells more of this node is what is read here.
    ...warningLines(
      page,
      node.warnings.map(({ node: _, ...warning }) => warning),
      nowMs,
    ),
    "",
    ...facts(page, node),
    ...linksSection(page, node, nowMs),
    ...conduitsSection(page, node),
    ...servicesSection(page, node),
    ...eventsSection(page, node.events, nowMs),
  ].join("\n") + "\n";
}

function headLines(page: Page, node: NodeDetail, nowMs: number): string[] {
  const { state, since, reason } = node;
  const name = cutToColumns(
    `node ${ofOthers(node.name)}`,
    page.columns - state.length - 2,
  );
  const head = page.paint(name, "bold") + "  " +
    page.paint(state, STATE_TONES[state] ?? "warn");
  const age = since === undefined
    ? []
    : [`for ${ageOf(since, nowMs)}, since ${whenText(since)}`];
  const more = [...age, ...reason === undefined ? [] : [reason]].join(": ");
  return [head, ...more === "" ? [] : sentenceLines(page, more, "  ")];
}

function facts(page: Page, node: NodeDetail): string[] {
  const joined = node.isJoined
    ? `${whenText(node.joinedAt)}${
      node.joinedFrom === undefined ? "" : ` from ${node.joinedFrom}`
    }`
    : "no, it is linked with a certificate or token of its own";
  const rows: [string, string][] = [
    ["version", node.version ?? "-"],
    ["address now", node.address ?? "-"],
    ["servers", node.servers.join(", ") || "-"],
    [
      "traffic",
      `${counted(node.conduits, "connection")}, ${
        rateText(node.toTargetRate)
      } ` +
      `to targets, ${rateText(node.fromTargetRate)} from them`,
    ],
    ["joined", joined],
    ["certificate", `until ${whenText(node.certificateUntil)}`],
    ["may be", node.grants.join(", ") || "its name only"],
    ["says it is", node.identifiers.join(", ") || "its name only"],
  ];
  return rows.flatMap(([name, value]) => {
    const [first = "", ...rest] = sentenceLines(page, value, FACT_INDENT);
    const label = page.paint(name.padEnd(FACT_INDENT.length), "dim");
    return [label + first.trimStart(), ...rest];
  });
}

/** As wide as the longest name of a fact, and a gap. */
const FACT_INDENT = " ".repeat(13);

function linksSection(
  page: Page,
  { linkDetails, state }: NodeDetail,
  nowMs: number,
): string[] {
  const count = linkDetails.length;
  if (count === 0) {
    return state === "online"
      ? section(page, "Links", "none here: other servers have it")
      : section(page, "Links", "none");
  }
  return section(
    page,
    "Links",
    countText(count),
    linkLines(page, linkDetails, nowMs),
  );
}

function conduitsSection(
  page: Page,
  { name, conduits, conduitDetails }: NodeDetail,
): string[] {
  if (conduits === 0 && conduitDetails.length === 0) {
    return section(page, "Connected", "nobody");
  }
  const lines = conduitLines(indented(page, 2), conduitDetails, "few");
  const more = conduits - conduitDetails.length;
  if (more > 0) {
    const text = `${countText(more)} more: tunnel conn list --node ${
      shellWord(name)
    }`;
    lines.push(...sentenceLines(indented(page, 2), text, ""));
  }
  return section(
    page,
    "Connected",
    counted(conduits, "connection"),
    lines.map((line) => `  ${line}`),
  );
}

function servicesSection(page: Page, { services }: NodeDetail): string[] {
  if (services.length === 0) return [];
  const lines = services.flatMap(({ name, problem }) =>
    problem === undefined
      ? sentenceLines(page, name, "  ")
      : sentenceLines(page, `${name}: ${problem}`, "  ")
  );
  return section(page, "Announces", counted(services.length, "service"), lines);
}

function eventsSection(
  page: Page,
  events: readonly EventInfo[],
  nowMs: number,
): string[] {
  if (events.length === 0) return [];
  const inner = indented(page, 2);
  const lines = fittedTable(
    [{ heading: "AGO", side: "right" }, { heading: "KIND" }, {
      heading: "EVENT",
      least: 20,
    }],
    events.map(({ at, kind, message, times = 1, code }) => [
      ageOf(at, nowMs),
      kind,
      (code === undefined ? "" : `${code} `) + message +
      (times > 1 ? ` (${countText(times)} times)` : ""),
    ]),
    inner,
  );
  return section(page, "Events", "", lines.map((line) => `  ${line}`));
}
