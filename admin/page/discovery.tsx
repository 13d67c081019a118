/**
 * Clients of discovery, and how far each of them is.
 *
 * @module
 */

import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { DiscoveryAnswer } from "../../proto/admin/list_answers.ts";
import { countText } from "../../platform/text/quantities.ts";
import { ageOf, type Column, stateCell, tableOf } from "../view/cells.ts";
import { CellText, SectionRows, ViewFacts } from "./cell.tsx";
import { askedList } from "./list_view.tsx";
import { Ago, PanelTitle } from "./marks.tsx";
import { peerText } from "./units.ts";
import { gridColumns } from "./virtual_grid.tsx";

type Client = DiscoveryAnswer["clients"][number];

const COLUMNS: readonly Column<Client>[] = [
  { heading: "STATE", of: ({ state }) => stateCell(state) },
  { heading: "NAME", of: ({ name }) => name },
  {
    heading: "RESOURCES",
    side: "right",
    of: ({ kinds }) =>
      countText(kinds.reduce((sum, { resources }) => sum + resources, 0)),
  },
  { heading: "FORM", of: ({ form, mode }) => `${form}, ${mode}` },
  { heading: "FOR", of: ({ since }, nowMs) => ageOf(since, nowMs) },
  { heading: "PROBLEM", of: ({ problem = "" }) => problem },
];

const KINDS: readonly Column<Client["kinds"][number]>[] = [
  { heading: "KIND", part: "name", of: ({ kind }) => kind },
  { heading: "STATE", part: "under", of: ({ state }) => state },
  {
    heading: "RESOURCES",
    part: "value",
    of: ({ resources }) => countText(resources),
  },
];

/** What needs attention first. */
const RANKS: Readonly<Record<Client["state"], number>> = {
  "refused": 0,
  "waiting": 1,
  "in sync": 2,
};

/** See the module description. */
export const Discovery = askedList<Client, DiscoveryAnswer>({
  ...{ view: "discovery", title: "Discovery clients" },
  ...{ path: ADMIN_PATHS.discovery, everyMs: 5_000 },
  find: ["a client", "name"],
  choices: [
    { value: "", title: "all" },
    ...Object.keys(RANKS).reverse().map((value) => ({ value, title: value })),
  ],
  columns: gridColumns(COLUMNS, {
    "STATE": [92, 2],
    "NAME": [150, 1, 3],
    "RESOURCES": [88, 1],
    "FORM": [150, 4, 2],
    "FOR": [80, 5],
    "PROBLEM": [160, 6, 3],
  }),
  items: ({ clients }) => clients,
  nameOf: ({ name }) => name,
  rank: ({ state }) => RANKS[state],
  isLike: (client, state) => client.state === state,
  words: ({ name }) => name,
  narrow: ({ state, form }) => (
    <>
      <CellText cell={stateCell(state)} /> · {peerText(form)}
    </>
  ),
  panel: (client) => <ClientPanel client={client} />,
  none: "No client of discovery is connected.",
});

function ClientPanel({ client }: { readonly client: Client }): VNode {
  const { name, state, since, form, mode, kinds } = client;
  return (
    <>
      <PanelTitle name={name} problem={client.problem} />
      <div class="panel-state">
        <CellText cell={stateCell(state)} />
        {since && <Ago at={since} />}
      </div>
      <ViewFacts
        facts={[{ name: "form", value: form }, { name: "mode", value: mode }]}
      />
      <h3>Resources</h3>
      <SectionRows
        section={{ table: tableOf(KINDS, kinds) }}
      />
    </>
  );
}
