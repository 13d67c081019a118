import { assert, assertEquals } from "@std/assert";
import { parseFile } from "../platform/documents/document.ts";
import { BOARDS } from "./dashboard_panels.ts";
import { productSources } from "./project_files.ts";

/** What a metric's name is made of, wherever the code puts it together. */
async function literals(): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const [path, text] of await productSources()) {
    // Its words are of protocols.
    if (path.startsWith("proto/")) continue;
    const words = text.matchAll(
      /["`}]_?([a-z][a-z0-9_]+)["`$]|^ +([a-z][a-z0-9_]+):/gm,
    );
    for (const [, text, key] of words) found.add(text ?? key!);
  }
  return found;
}

/** Programs stand in front; suffixes are added where a metric is made. */
const COMMON = ["tunnel", "server", "agent", "proxy", "total", "seconds"];

/** A name is put together of so many words at most. */
const PARTS_MAX = 4;

/** @returns Whether the code has the parts of which the name consists. */
function isKnown(
  name: string,
  parts: ReadonlySet<string>,
  left = PARTS_MAX,
): boolean {
  if (name === "") return true;
  if (left === 0) return false;
  for (let end = name.length; end > 0; end--) {
    const word = name.slice(0, end);
    const isWhole = end === name.length || name[end] === "_" ||
      word.endsWith("_");
    if (!isWhole || !parts.has(word) && !COMMON.includes(word)) continue;
    const rest = name.slice(end).replace(/^_/, "");
    if (isKnown(rest, parts, left - 1)) return true;
  }
  return false;
}

interface RuleFile {
  groups: { rules: { record?: string; expr: string; alert?: string }[] }[];
}

async function ruleExpressions(): Promise<
  { records: Set<string>; expressions: string[] }
> {
  const records = new Set<string>();
  const expressions: string[] = [];
  for (const name of ["rules.yaml", "alerts.yaml"]) {
    const path = new URL(`../deploy/prometheus/${name}`, import.meta.url);
    const { groups } = parseFile(
      name,
      await Deno.readTextFile(path),
    ) as RuleFile;
    for (const { record, expr } of groups.flatMap(({ rules }) => rules)) {
      if (record !== undefined) records.add(record);
      expressions.push(expr);
    }
  }
  return { records, expressions };
}

/** Names of metrics in an expression; of a pattern, each that it names. */
function metricNames(expr: string): string[] {
  const patterns = [...expr.matchAll(/__name__=~"(\w+)\(([\w|]+)\)(\w+)"/g)]
    .flatMap(([, before, middle, after]) =>
      middle!.split("|").map((each) => `${before}${each}${after}`)
    );
  const plain = expr.replaceAll(/"[^"]*"/g, "")
    .match(/\b(?:tunnel|konnectivity|process)_[a-z0-9_:]+/g) ?? [];
  return [...plain, ...patterns];
}

/** Of the series of a histogram, its name. */
function whole(name: string): string {
  return name.replace(/_(?:bucket|sum|count)$/, "");
}

Deno.test("dashboards, rules and alerts name only metrics that there are", async () => {
  const parts = await literals();
  const { records, expressions } = await ruleExpressions();
  const asked = BOARDS.flatMap(({ panels }) => panels)
    .flatMap(({ queries }) => queries.map(([, expr]) => expr));
  const names = new Set([...asked, ...expressions].flatMap(metricNames));
  assert(names.size > 40);
  const unknown = [...names]
    .filter((name) =>
      !records.has(name) && !isKnown(name, parts) &&
      !isKnown(whole(name), parts)
    );
  assertEquals(unknown, []);
  assert(!isKnown("tunnel_server_planets_total", parts));
  assert(!isKnown("konnectivity_network_proxy_server_planet_count", parts));
});
