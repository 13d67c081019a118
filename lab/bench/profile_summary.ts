/**
 * A CPU profile of V8 as text: where the time of one thread went.
 *
 * The format is that of the inspector's `Profiler.stop`: a tree of call frames,
 * and for each sample the leaf it was taken in and how long after the last one.
 *
 * @module
 */

/** One place in the tree of calls. */
export interface ProfileNode {
  readonly id: number;
  readonly callFrame: {
    readonly functionName: string;
    readonly url: string;
    /** Counted from 0. */
    readonly lineNumber: number;
  };
  readonly children?: readonly number[];
}

/** What `Profiler.stop` answers with. Times are in µs. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly startTime: number;
  readonly endTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Whose code a sample was taken in. */
export type Area = "ours" | "platform" | "program" | "gc" | "idle";

/** What each area holds, in the words of the summary. */
const AREAS: Readonly<Record<Area, string>> = {
  ours: "ours",
  platform: "platform's JavaScript",
  program: "program, operations and system calls",
  gc: "garbage collection",
  idle: "idle",
};

/** How a summary is to look. */
export interface SummaryOptions {
  /** Files below this URL are ours. */
  readonly root: string;
  /** Rows of each table. */
  readonly rows: number;
  /** What was done meanwhile: times are shown per one of it, too. */
  readonly work?: { readonly count: number; readonly unit: string };
}

/** Frames that V8 makes up, by their names. */
const MADE_UP: ReadonlyMap<string, Area> = new Map([
  ["(garbage collector)", "gc"],
  ["(idle)", "idle"],
  ["(program)", "program"],
  ["(root)", "program"],
]);

/** Whose code `node` is. */
export function areaOf(node: ProfileNode, root: string): Area {
  const { functionName, url } = node.callFrame;
  const madeUp = url === "" ? MADE_UP.get(functionName) : undefined;
  if (madeUp !== undefined) return madeUp;
  if (url.startsWith(root)) return "ours";
  // What has no file is an operation of the platform, written in its language.
  return url === "" ? "program" : "platform";
}

/** Three tables: areas, the dearest functions, and whom of ours they served. */
export function summarize(
  profile: CpuProfile,
  options: SummaryOptions,
): string {
  const times = new Times(profile, options.root);
  const { busyUs } = times;
  const row = (us: number, text: string) => {
    const percent = `${(us / busyUs * 100).toFixed(1)} %`.padStart(7);
    const each = options.work === undefined
      ? ""
      : (us / options.work.count).toFixed(2).padStart(9);
    return `${percent}${each}  ${text}`;
  };
  const table = (title: string, rows: ReadonlyMap<string, number>) => [
    "",
    title,
    ...[...rows].sort(([, a], [, b]) => b - a).slice(0, options.rows)
      .map(([text, us]) => row(us, text)),
  ];
  const tookMs = (profile.endTime - profile.startTime) / 1000;
  const unit = options.work === undefined
    ? ""
    : `, then µs per ${options.work.unit} (${options.work.count})`;
  return [
    `${profile.samples.length} samples in ${tookMs.toFixed(0)} ms, ` +
    `${(busyUs / 1000).toFixed(0)} ms busy; % of the busy time${unit}`,
    ...table("by area", times.byArea),
    ...table("by function (self)", times.byFunction),
    ...table("by what of ours asked for it", times.byOwner),
  ].join("\n");
}

/** The samples' times, added up three ways. */
class Times {
  readonly byArea = new Map<string, number>();
  readonly byFunction = new Map<string, number>();
  readonly byOwner = new Map<string, number>();
  busyUs = 0;

  constructor(profile: CpuProfile, root: string) {
    const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
    const owners = ownersOf(profile.nodes, nodes, root);
    profile.samples.forEach((id, index) => {
      const node = nodes.get(id);
      if (node === undefined) {
        throw new RangeError(`Cannot read the profile: no node ${id}`);
      }
      // V8 may hand in samples out of order: their deltas are below zero then.
      const us = Math.max(0, profile.timeDeltas[index] ?? 0);
      const area = areaOf(node, root);
      add(this.byArea, AREAS[area], us);
      if (area === "idle") return;
      this.busyUs += us;
      add(this.byFunction, placeOf(node, root), us);
      add(this.byOwner, owners.get(id) ?? "nobody of ours", us);
    });
  }
}

function add(sums: Map<string, number>, key: string, us: number): void {
  sums.set(key, (sums.get(key) ?? 0) + us);
}

/** For each node the place of the innermost frame of ours that led to it. */
function ownersOf(
  all: readonly ProfileNode[],
  nodes: ReadonlyMap<number, ProfileNode>,
  root: string,
): ReadonlyMap<number, string> {
  const owners = new Map<number, string>();
  const isChild = new Set(all.flatMap((node) => node.children ?? []));
  // A list and not recursion: stacks may be deep.
  const open = all.filter((node) => !isChild.has(node.id));
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (areaOf(node, root) === "ours") owners.set(node.id, placeOf(node, root));
    const owner = owners.get(node.id);
    for (const id of node.children ?? []) {
      if (owner !== undefined) owners.set(id, owner);
      open.push(nodes.get(id)!);
    }
  }
  return owners;
}

/** `function file:line`, our files without the way to them. */
function placeOf(node: ProfileNode, root: string): string {
  const { functionName, url, lineNumber } = node.callFrame;
  const name = functionName || "(anonymous)";
  if (url === "") return name;
  const file = url.startsWith(root) ? url.slice(root.length) : url;
  return `${name} ${file}:${lineNumber + 1}`;
}
