/**
 * Services and where they are served.
 *
 * @module
 */

import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { ServicesAnswer } from "../../proto/admin/list_answers.ts";
import { countText } from "../../platform/text/quantities.ts";
import { type Column, stateCell, tableOf } from "../view/cells.ts";
import { CellText, SectionRows, ViewFacts } from "./cell.tsx";
import { askedList } from "./list_view.tsx";
import { Nothing, PanelTitle } from "./marks.tsx";
import { peerText } from "./units.ts";
import { gridColumns } from "./virtual_grid.tsx";

type Service = ServicesAnswer["services"][number];

const COLUMNS: readonly Column<Service>[] = [
  { heading: "STATE", of: (service) => stateCell(stateOf(service)) },
  { heading: "NAME", of: ({ name }) => name },
  { heading: "READY", side: "right", of: readyText },
  { heading: "PORTS", of: ({ ports }) => ports.join(", ") },
  { heading: "SOURCE", of: ({ source }) => source },
  { heading: "PROBLEM", of: ({ problem = "" }) => problem },
];

const ENDPOINTS: readonly Column<Service["endpoints"][number]>[] = [
  { heading: "ENDPOINT", part: "name", of: ({ address }) => address },
  {
    heading: "NODE",
    part: "under",
    of: ({ node }) =>
      node === undefined
        ? "-"
        : { text: node, to: { view: "nodes", name: node } },
  },
  {
    heading: "STATE",
    part: "value",
    of: ({ isReady }) => stateCell(isReady ? "ready" : "not ready"),
  },
];

/** See the module description. */
export const Services = askedList<Service, ServicesAnswer>({
  ...{ view: "services", title: "Services" },
  ...{ path: ADMIN_PATHS.services, everyMs: 10_000 },
  find: ["a service", "name, source"],
  choices: [
    { value: "", title: "all" },
    { value: "ok", title: "ok" },
    { value: "not ready", title: "not ready" },
    { value: "failed", title: "with a problem" },
  ],
  columns: gridColumns(COLUMNS, {
    "STATE": [104, 2],
    "NAME": [150, 1, 3],
    "READY": [80, 1],
    "PORTS": [130, 3, 1],
    "SOURCE": [130, 4, 1],
    "PROBLEM": [160, 5, 3],
  }),
  items: ({ services }) => services,
  nameOf: ({ name }) => name,
  isLike: (service, state) => stateOf(service) === state,
  words: ({ name, source }) => `${name} ${source}`,
  narrow: (service) => (
    <>
      <CellText cell={stateCell(stateOf(service))} /> ·{" "}
      {peerText(service.ports.join(", "))}
    </>
  ),
  panel: (service) => <ServicePanel service={service} />,
  none: "There is no service like that. A server has services when it runs " +
    "with --discovery.",
});

function ServicePanel({ service }: { readonly service: Service }): VNode {
  const { name, problem, source, ports, endpoints } = service;
  return (
    <>
      <PanelTitle name={name} problem={problem} />
      <div class="panel-state">
        <CellText cell={stateCell(stateOf(service))} />
        <span>{readyText(service)} ready</span>
      </div>
      <ViewFacts
        facts={[
          { name: "source", value: source },
          { name: "ports", value: ports },
        ]}
      />
      <h3>Endpoints</h3>
      {endpoints.length === 0 && <Nothing>It has none.</Nothing>}
      <SectionRows
        section={{ table: tableOf(ENDPOINTS, endpoints) }}
        most={ENDPOINTS_MAX}
      />
    </>
  );
}

const ENDPOINTS_MAX = 500;

function stateOf({ problem, endpoints }: Service): string {
  if (problem !== undefined) return "failed";
  return endpoints.some(({ isReady }) => isReady) ? "ok" : "not ready";
}

function readyText({ endpoints }: Service): string {
  const ready = endpoints.filter(({ isReady }) => isReady).length;
  return `${countText(ready)}/${countText(endpoints.length)}`;
}
