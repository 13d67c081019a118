/**
 * What one looks at first: what needs attention, then what passes, what has gone,
 * what is slow and what expires.
 *
 * @module
 */

import type { VNode } from "preact";
import type { StatusAnswer, Warning } from "../../proto/admin/status_answer.ts";
import { Chart, type Line } from "./chart.tsx";
import {
  Ago,
  Fact,
  Facts,
  NodeLink,
  Nothing,
  Panel,
  Said,
  Sentence,
  State,
  Until,
} from "./marks.tsx";
import { peerText } from "./peer_text.ts";
import { placeLink } from "./place.ts";
import { status } from "./server_state.ts";
import {
  ageText,
  counted,
  countText,
  rateText as perSecond,
  sizeText,
} from "../../platform/text/quantities.ts";
import { msText, rateText } from "./units.ts";

const THROUGHPUT: readonly Line[] = [
  { title: "to targets", colour: "series-1", of: (sample) => sample.toTarget },
  {
    title: "from targets",
    colour: "series-2",
    of: (sample) => sample.fromTarget,
  },
];
const LATENCY: readonly Line[] = [
  { title: "median", colour: "series-1", of: (sample) => sample.p50 },
  { title: "99 %", colour: "series-2", of: (sample) => sample.p99 },
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
        <Chart title="Throughput" lines={THROUGHPUT} format={perSecond} />
        <Chart title="Dial latency" lines={LATENCY} format={msText} />
      </div>
      <div class="columns">
        <Gone {...answer} />
        <Slowest {...answer} />
        <Expiries {...answer} />
        <Busiest {...answer} />
        <Others {...answer} />
        <Program {...answer} />
      </div>
    </div>
  );
}

/** The worst first, each with what it is about. */
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
            <State state="ok" isShort /> Nothing needs attention.
          </Nothing>
        )
        : (
          <ul class="list">
            {warnings.map((warning, index) => (
              <li key={index} class="warning">
                <State state={warning.severity} />
                <div>
                  <Sentence text={warning.message} />
                  <div class="second">
                    {warning.node !== undefined &&
                      <NodeLink name={warning.node} />}
                    {warning.since && (
                      <span>
                        since <Ago at={warning.since} />
                      </span>
                    )}
                    {warning.code && (
                      <code>
                        {warning.code === "TUN402" && warning.node
                          ? `tunnel doctor node ${peerText(warning.node)}`
                          : `tunnel explain ${peerText(warning.code)}`}
                      </code>
                    )}
                  </div>
                </div>
              </li>
            ))}
          </ul>
        )}
    </Panel>
  );
}

function Counts({ nodes, traffic }: StatusAnswer): VNode {
  return (
    <ul class="counts" aria-label="Counts">
      {nodes && (
        <>
          <Count name="online" at="nodes" of={nodes.online} state="online" />
          <Count name="offline" at="nodes" of={nodes.offline} state="offline" />
          <Count name="pending" at="nodes" of={nodes.pending} state="pending" />
          <Count name="revoked" at="nodes" of={nodes.revoked} state="revoked" />
          <Count name="links" at="nodes" of={nodes.links} />
        </>
      )}
      <Count name="connections" at="conduits" of={traffic.conduits} />
      <Count name="dials waiting" at="conduits" of={traffic.pendingDials} />
      <Count name="dials/s" at="log" of={traffic.dialRate} />
      <Count
        name="dials failed so far"
        at="log"
        of={traffic.failedDials}
      />
    </ul>
  );
}

function Count(
  { name, of, at, state }: {
    readonly name: string;
    readonly of: number;
    readonly at: string;
    readonly state?: string;
  },
): VNode {
  const shown = of < 10 && !Number.isInteger(of)
    ? of.toFixed(1)
    : countText(Math.round(of));
  return (
    <li>
      <a href={placeLink(at, "", state ? { state } : {})}>
        <strong>
          {state && of > 0 && <State state={state} isShort />}
          {shown}
        </strong>
        <span>{name}</span>
      </a>
    </li>
  );
}

function Gone({ nodes }: StatusAnswer): VNode | null {
  if (nodes === undefined) return null;
  return (
    <Panel
      title="Gone lately"
      note={<a href={placeLink("nodes", "", { state: "offline" })}>all</a>}
    >
      {nodes.lastGone.length === 0 && <Nothing>No node is offline.</Nothing>}
      <ul class="list rows">
        {nodes.lastGone.toSorted(byTime("since")).reverse().slice(0, 8).map((
          { name, since, reason },
        ) => (
          <li key={name}>
            <span class="grow">
              <NodeLink name={name} />
              {reason && (
                <div class="second">
                  <Said text={reason} />
                </div>
              )}
            </span>
            <Ago at={since} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Slowest({ nodes }: StatusAnswer): VNode | null {
  if (nodes === undefined) return null;
  return (
    <Panel title="Slowest nodes">
      {nodes.slowest.length === 0 && <Nothing>No node is slow.</Nothing>}
      <ul class="list rows">
        {nodes.slowest.map(({ name, roundTripMs, why }) => (
          <li key={name}>
            <span class="grow">
              <NodeLink name={name} />
              <div class="second">
                <Said text={why} />
              </div>
            </span>
            <span>{msText(roundTripMs)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Expiries({ expiries }: StatusAnswer): VNode {
  return (
    <Panel
      title="Expires next"
      note={<a href={placeLink("certificates")}>all</a>}
    >
      {expiries.length === 0 && <Nothing>Nothing expires.</Nothing>}
      <ul class="list rows">
        {expiries.toSorted(byTime("at")).slice(0, 8).map((
          { what, at, renewal },
          index,
        ) => (
          <li key={index}>
            <span class="grow">
              <Said text={what} />
              <div class="second">renewed {renewal}</div>
            </span>
            {renewal === "by hand" ? <Until at={at} /> : <Later at={at} />}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** The first first. */
function byTime<Name extends string>(name: Name) {
  type Timed = { readonly [name in Name]?: string };
  return (a: Timed, b: Timed) =>
    Date.parse(a[name] ?? "") - Date.parse(b[name] ?? "");
}

/** Renewed by itself: that it comes is no worry. */
function Later({ at }: { readonly at: string }): VNode {
  return (
    <span class="faint">
      <Until at={at} />
    </span>
  );
}

function Busiest({ top = [] }: StatusAnswer): VNode {
  return (
    <Panel
      title="Busiest connections"
      note={<a href={placeLink("conduits")}>all</a>}
    >
      {top.length === 0 && <Nothing>There is no connection.</Nothing>}
      <ul class="list rows">
        {top.slice(0, 8).map((conduit) => (
          <li key={conduit.id}>
            <span class="grow">
              <a class="name" href={placeLink("conduits", conduit.id)}>
                <Said text={conduit.target} />
              </a>
              <div class="second">
                <Said text={conduit.caller} />
                {conduit.node !== undefined && (
                  <>
                    {" "}
                    → <Said text={conduit.node} />
                  </>
                )}
              </div>
            </span>
            <span>
              {rateText(conduit.toTargetRate + conduit.fromTargetRate)}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Others({ servers = [], sources = [], discovery }: StatusAnswer) {
  if (servers.length + sources.length === 0 && !discovery) return null;
  return (
    <Panel title="Servers and sources">
      <ul class="list rows">
        {servers.map(({ id, address, agents, problem }) => (
          <li key={`server ${id}`}>
            <span class="grow">
              <State state={problem ? "failed" : "ok"} isShort /> server{" "}
              <Said text={id} />
              <div class="second">
                <Said text={problem ?? address} />
              </div>
            </span>
            {agents !== undefined && <span>{counted(agents, "agent")}</span>}
          </li>
        ))}
        {sources.map(({ name, isSynced, problem }) => (
          <li key={`source ${name}`}>
            <span class="grow">
              <State
                state={problem ? "failed" : isSynced ? "in sync" : "waiting"}
                isShort
              />{" "}
              source <Said text={name} />
              {problem && (
                <div class="second">
                  <Said text={problem} />
                </div>
              )}
            </span>
            <span>{isSynced ? "in sync" : "not yet in sync"}</span>
          </li>
        ))}
        {discovery && (
          <li>
            <span class="grow">
              <a href={placeLink("discovery")}>Discovery clients</a>
              <div class="second">
                {countText(discovery.inSync)} in sync,{" "}
                {countText(discovery.refused)} refused
              </div>
            </span>
            <span>{countText(discovery.clients)}</span>
          </li>
        )}
      </ul>
    </Panel>
  );
}

function Program({ program, traffic }: StatusAnswer): VNode {
  const upMs = Date.parse(program.now) - Date.parse(program.startedAt);
  return (
    <Panel title="This server">
      <Facts>
        <Fact name="Id">
          <Said text={program.id} />
        </Fact>
        <Fact name="Version">{peerText(program.version)}</Fact>
        <Fact name="Up">{ageText(upMs)}</Fact>
        <Fact name="Process">{`${program.pid}`}</Fact>
        <Fact name="Worker">
          {program.workers &&
            `${program.worker} of ${countText(program.workers)}: this page ` +
              "shows its connections; tunnel conn list shows all"}
        </Fact>
        <Fact name="Memory">
          {program.residentBytes && sizeText(program.residentBytes)}
        </Fact>
        <Fact name="Processor">
          {program.cpuSeconds && ageText(program.cpuSeconds * 1000)}
        </Fact>
        <Fact name="To targets">{sizeText(traffic.toTargetBytes)}</Fact>
        <Fact name="From targets">{sizeText(traffic.fromTargetBytes)}</Fact>
        {Object.entries(program.addresses).map(([name, address]) => (
          <Fact key={name} name={`Port: ${peerText(name)}`}>
            <Said text={address} />
          </Fact>
        ))}
      </Facts>
    </Panel>
  );
}
