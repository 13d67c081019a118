/**
 * The first view: warnings, then traffic, then the sections of
 * `admin/view/status.ts` in their order.
 *
 * @module
 */

import type { VNode } from "preact";
import type { StatusAnswer, Warning } from "../../proto/admin/status_answer.ts";
import {
  ageText,
  countText,
  millisText,
  rateText,
  sizeText,
} from "../../platform/text/quantities.ts";
import { type Fact, nextCommand, type Tone, toneOf } from "../view/cells.ts";
import { perSecond, programFacts, statusSections } from "../view/status.ts";
import { SectionPanel, ViewFacts } from "./cell.tsx";
import { Chart, type Line } from "./chart.tsx";
import { Ago, NameLink, Nothing, Panel, Sentence, State } from "./marks.tsx";
import { peerText } from "./units.ts";
import { placeLink } from "./place.ts";
import { clock, status } from "./server_state.ts";

const THROUGHPUT: readonly Line[] = [
  { title: "to targets", colour: "series-1", of: "toTargetRate" },
  { title: "from targets", colour: "series-2", of: "fromTargetRate" },
];
const LATENCY: readonly Line[] = [
  { title: "median", colour: "series-1", of: "dialP50Ms" },
  { title: "99 %", colour: "series-2", of: "dialP99Ms" },
];

/** See the module description. */
export function Overview(): VNode {
  const answer = status.value;
  if (answer === undefined) return <Nothing>Waiting for the server …</Nothing>;
  return (
    <div class="overview">
      <Warnings warnings={answer.warnings} />
      <Counts {...answer} />
      <div class="pair">
        <Chart title="Throughput" lines={THROUGHPUT} format={rateText} />
        <Chart title="Dial latency" lines={LATENCY} format={millisText} />
      </div>
      <div class="columns">
        {statusSections(answer, clock.value).map((section) => (
          <SectionPanel key={section.heading} section={section} />
        ))}
        <Panel title="This server">
          <ViewFacts facts={[...ownFacts(answer)]} />
        </Panel>
      </div>
    </div>
  );
}

/** The worst first, each with its subject. */
export function Warnings(
  { warnings }: { readonly warnings: readonly Warning[] },
): VNode {
  return (
    <Panel
      title="Needs attention"
      note={warnings.length > 0 ? countText(warnings.length) : undefined}
      kind="warnings"
    >
      {warnings.length === 0
        ? (
          <Nothing>
            <State tone="good" isShort>ok</State> Nothing needs attention.
          </Nothing>
        )
        : (
          <ul class="list">
            {warnings.map((warning, index) => (
              <li key={index} class="warning">
                <State tone={toneOf(warning.severity)}>
                  {warning.severity}
                </State>
                <div>
                  <Sentence text={warning.message} />
                  <MoreOf warning={warning} />
                </div>
              </li>
            ))}
          </ul>
        )}
    </Panel>
  );
}

function MoreOf({ warning }: { readonly warning: Warning }): VNode {
  const { node, since } = warning;
  const next = nextCommand(warning);
  return (
    <div class="second">
      {node !== undefined && <NameLink name={node} />}
      {since && (
        <span>
          since <Ago at={since} />
        </span>
      )}
      {next && <code>{peerText(next)}</code>}
    </div>
  );
}

function Counts({ nodes, traffic }: StatusAnswer): VNode {
  const states = ["online", "offline", "pending", "revoked"] as const;
  const rates = [
    ["connections", "conduits", countText(traffic.conduits)],
    ["dials waiting", "conduits", countText(traffic.pendingDials)],
    ["dials/s", "log", perSecond(traffic.dialRate)],
    ["dials failed so far", "log", countText(traffic.failedDials)],
  ] as const;
  return (
    <ul class="counts" aria-label="Counts">
      {nodes && (
        <>
          {states.map((state) => (
            <Count
              key={state}
              name={state}
              at="nodes"
              of={countText(nodes[state])}
              state={state}
              tone={nodes[state] > 0 ? toneOf(state) : undefined}
            />
          ))}
          <Count name="links" at="nodes" of={countText(nodes.links)} />
        </>
      )}
      {rates.map(([name, at, of]) => (
        <Count
          key={name}
          {...{ name, at, of }}
        />
      ))}
    </ul>
  );
}

function Count(
  { name, of, at, state, tone }: {
    readonly name: string;
    readonly of: string;
    readonly at: string;
    readonly state?: string;
    readonly tone?: Tone | undefined;
  },
): VNode {
  return (
    <li>
      <a href={placeLink(at, "", state ? { state } : {})}>
        <strong>
          {tone && <State tone={tone} isShort>{name}</State>}
          {of}
        </strong>
        <span>{name}</span>
      </a>
    </li>
  );
}

function* ownFacts({ program, traffic }: StatusAnswer): Iterable<Fact> {
  const { residentBytes, cpuSeconds } = program;
  yield { name: "id", value: program.id };
  yield* programFacts(program);
  if (program.workers !== undefined) {
    const value = "those of its worker; tunnel conn list shows all";
    yield { name: "connections", value };
  }
  if (residentBytes !== undefined) {
    yield { name: "memory", value: sizeText(residentBytes) };
  }
  if (cpuSeconds !== undefined) {
    yield { name: "processor", value: ageText(cpuSeconds * 1_000) };
  }
  yield { name: "to targets", value: sizeText(traffic.toTargetBytes) };
  yield { name: "from targets", value: sizeText(traffic.fromTargetBytes) };
  for (const [use, address] of Object.entries(program.addresses)) {
    yield { name: `port: ${use}`, value: address };
  }
}
