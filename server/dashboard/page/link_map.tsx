/**
 * Servers, and the nodes that are linked to each, as one square a node: all of
 * five thousand are seen at once, those that need attention first. The table
 * above has the same as numbers, and leads to the lists.
 *
 * @module
 */

import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { NodeSummary } from "../../../proto/admin/node_answer.ts";
import { NodeLink, Nothing, Said, State } from "./marks.tsx";
import { nodeRank } from "./node_list.tsx";
import { compareNames } from "./ordered.ts";
import { cellAt, drawMap, type MapColouring } from "./packed_map.ts";
import { peerText } from "./peer_text.ts";
import { goTo, placeLink } from "./place.ts";
import { nodes, status } from "./server_state.ts";
import { isDark } from "./theme.ts";
import { countOf, countText, msText, rateText } from "./units.ts";

const STATES = ["online", "offline", "pending", "revoked"] as const;
/** Where nodes are shown that no server has. */
const NOWHERE = "";

/** What makes a group of nodes. */
type Grouping = "server" | "version" | "name";

const grouping = signal<Grouping>("server");
const colouring = signal<MapColouring>("state");

interface Group {
  readonly name: string;
  /** What needs attention first. */
  readonly nodes: readonly NodeSummary[];
  readonly counts: ReadonlyMap<string, number>;
  readonly links: number;
  readonly rate: number;
}

/** See the module description. */
export function LinkMap(): VNode {
  void nodes.version.value;
  const groups = groupsOf(nodes.items.values(), grouping.value);
  const all = groups.reduce((sum, { nodes }) => sum + nodes.length, 0);
  return (
    <div class="map">
      <h1 class="unseen">Map of links</h1>
      <div class="tools">
        <Choice
          label="Group by"
          signal={grouping}
          choices={["server", "version", "name"]}
        />
        <Choice
          label="Colour by"
          signal={colouring}
          choices={["state", "traffic", "round trip"]}
        />
        <Legend />
      </div>
      {!nodes.isKnown.value && <Nothing>Waiting for the server …</Nothing>}
      {nodes.isKnown.value && groups.length === 0 && (
        <Nothing>No node is known yet.</Nothing>
      )}
      {groups.length > 0 && <Matrix groups={groups} />}
      {groups.map((group) => (
        <GroupBlock key={group.name} group={group} all={all} />
      ))}
    </div>
  );
}

function Choice<T extends string>(
  { label, signal: chosen, choices }: {
    readonly label: string;
    readonly signal: { value: T };
    readonly choices: readonly T[];
  },
): VNode {
  return (
    <div class="choice" role="group" aria-label={label}>
      <span class="faint">{label}</span>
      <div class="filters">
        {choices.map((choice) => (
          <button
            key={choice}
            type="button"
            aria-pressed={chosen.value === choice}
            onClick={() => chosen.value = choice}
          >
            {choice}
          </button>
        ))}
      </div>
    </div>
  );
}

function Legend(): VNode {
  if (colouring.value === "state") {
    return (
      <ul class="legend">
        {STATES.map((state) => (
          <li key={state}>
            <span class={`key is-${state}`} aria-hidden="true" />
            {state}
          </li>
        ))}
        <li>
          <span class="key is-problem" aria-hidden="true" />
          with a problem
        </li>
      </ul>
    );
  }
  const [least, most] = colouring.value === "traffic"
    ? ["1 kB/s", "100 MB/s"]
    : ["1 ms", "1 s"];
  return (
    <p class="legend">
      {least} <span class="scale" aria-hidden="true" /> {most}
    </p>
  );
}

/** The same as numbers. */
function Matrix({ groups }: { readonly groups: readonly Group[] }): VNode {
  return (
    <div class="panel matrix">
      <table class="plain">
        <caption class="unseen">
          Nodes by {grouping.value} and state
        </caption>
        <thead>
          <tr>
            <th scope="col">{titleOf(grouping.value)}</th>
            {STATES.map((state) => (
              <th key={state} scope="col" class="is-number">{state}</th>
            ))}
            <th scope="col" class="is-number is-spare">links</th>
            <th scope="col" class="is-number is-spare">rate</th>
          </tr>
        </thead>
        <tbody>
          {groups.map(({ name, counts, links, rate }) => (
            <tr key={name}>
              <th scope="row">
                <GroupName name={name} />
              </th>
              {STATES.map((state) => (
                <td key={state} class="is-number">
                  {counts.has(state)
                    ? (
                      <a href={placeLink("nodes", "", { state })}>
                        {countText(counts.get(state)!)}
                      </a>
                    )
                    : <span class="faint">–</span>}
                </td>
              ))}
              <td class="is-number is-spare">
                {links === 0 ? "–" : countText(links)}
              </td>
              <td class="is-number is-spare">{rateText(rate)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function titleOf(by: Grouping): string {
  return by === "server" ? "Server" : by === "version" ? "Version" : "Name";
}

function GroupName({ name }: { readonly name: string }): VNode {
  if (name !== NOWHERE) return <Said text={name} />;
  return (
    <span class="faint">
      {grouping.value === "server" ? "not linked" : "not known"}
    </span>
  );
}

function GroupBlock(
  { group, all }: { readonly group: Group; readonly all: number },
): VNode {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const [over, setOver] = useState<
    { readonly node: NodeSummary; readonly x: number; readonly y: number }
  >();
  const { value: by } = colouring;
  useEffect(() => {
    if (width > 0) drawMap(canvas.current!, width, group.nodes, all, by);
  }, [width, group, all, by, isDark.value]);
  const under = (event: MouseEvent) => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const index = cellAt([x, y], width, group.nodes.length, all);
    const node = index === undefined ? undefined : group.nodes[index];
    return node && { node, x, y };
  };
  return (
    <section class="group" aria-label={labelOf(group)}>
      <GroupCard group={group} />
      <div class="squares" ref={box}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={labelOf(group)}
          onPointerMove={(event) => setOver(under(event))}
          onPointerLeave={() => setOver(undefined)}
          onClick={(event) => {
            const found = under(event);
            if (found) goTo("nodes", found.node.name);
          }}
        />
        {over && <Tip {...over} width={width} />}
      </div>
    </section>
  );
}

function GroupCard({ group }: { readonly group: Group }): VNode {
  const isServer = grouping.value === "server" && group.name !== NOWHERE;
  const answer = status.value;
  const isThis = isServer && answer?.program.id === group.name;
  const other = isServer
    ? answer?.servers?.find(({ id }) => id === group.name)
    : undefined;
  return (
    <div class="card">
      <h2>
        <GroupName name={group.name} />
      </h2>
      {isThis && <p class="second">this server</p>}
      {other && (
        <p class="second">
          <State state={other.problem ? "failed" : "linked"} isShort />{" "}
          <Said text={other.problem ?? other.address} />
        </p>
      )}
      <p class="second">
        {countOf(group.nodes.length, "node")}
        {group.links > 0 && `, ${countOf(group.links, "link")}`}
        {group.rate >= 0.5 && `, ${rateText(group.rate)}`}
      </p>
    </div>
  );
}

function Tip(
  { node, x, y, width }: {
    readonly node: NodeSummary;
    readonly x: number;
    readonly y: number;
    readonly width: number;
  },
): VNode {
  const isRight = x > width / 2;
  return (
    <div
      class="tip"
      style={isRight
        ? { right: `${width - x + 12}px`, top: `${y + 12}px` }
        : { left: `${x + 12}px`, top: `${y + 12}px` }}
    >
      <NodeLink name={node.name} isSkipped />
      <div>
        <State state={node.state} /> {node.state === "online" &&
          `${rateText(node.toTargetRate + node.fromTargetRate)}, ` +
            `${msText(node.roundTripMs)}, ${countOf(node.links, "link")}`}
      </div>
      {(node.problem ?? node.reason) && (
        <div class="second">
          <Said text={node.problem ?? node.reason ?? ""} />
        </div>
      )}
    </div>
  );
}

function labelOf({ name, nodes, counts }: Group): string {
  const parts = STATES.filter((state) => counts.has(state))
    .map((state) => `${countText(counts.get(state)!)} ${state}`);
  return `${name === NOWHERE ? "no server" : peerText(name)}: ${
    countOf(nodes.length, "node")
  }, ${parts.join(", ")}`;
}

function groupsOf(
  all: Iterable<NodeSummary>,
  by: Grouping,
): readonly Group[] {
  const found = new Map<string, NodeSummary[]>();
  for (const node of all) {
    for (const name of namesOf(node, by)) {
      const there = found.get(name);
      if (there === undefined) found.set(name, [node]);
      else there.push(node);
    }
  }
  const groups = [...found].map(([name, nodes]) =>
    groupOf(name, nodes, by !== "server" || name === status.value?.program.id)
  );
  // Those that are not linked come first: somebody should look at them.
  return groups.sort((a, b) => compareNames(a.name, b.name));
}

function groupOf(
  name: string,
  found: NodeSummary[],
  isOwn: boolean,
): Group {
  const counts = new Map<string, number>();
  let [links, rate] = [0, 0];
  for (const node of found) {
    counts.set(node.state, (counts.get(node.state) ?? 0) + 1);
    // What this server knows of links and traffic is of its own.
    if (!isOwn) continue;
    links += node.links;
    rate += node.toTargetRate + node.fromTargetRate;
  }
  found.sort((a, b) =>
    nodeRank(a) - nodeRank(b) || compareNames(a.name, b.name)
  );
  return { name, nodes: found, counts, links, rate };
}

/** A node that is linked to two servers is shown at both. */
function namesOf(node: NodeSummary, by: Grouping): readonly string[] {
  switch (by) {
    case "server":
      return node.servers.length === 0 ? [NOWHERE] : node.servers;
    case "version":
      return [node.version ?? NOWHERE];
    case "name":
      // What stands before the number: edge-17 and edge-18 are a group.
      return [/^\D*?(?=[-_.]?\d|$)/.exec(node.name)?.[0] || NOWHERE];
  }
}

function useWidth(box: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) =>
      setWidth(Math.floor(entry!.contentRect.width))
    );
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return width;
}
