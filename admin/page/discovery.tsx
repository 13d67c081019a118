/**
 * Clients of discovery, and how far each of them is.
 *
 * @module
 */

import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { DiscoveryAnswer } from "../../proto/admin/list_answers.ts";
import { useAsked } from "./asked.ts";
import { type FilterChoice, Filters, Search } from "./filters.tsx";
import { Ago, Fact, Facts, Nothing, Said, State } from "./marks.tsx";
import { compareNames } from "./ordered.ts";
import { peerText } from "./peer_text.ts";
import { goTo, place } from "./place.ts";
import { SplitView } from "./split_view.tsx";
import { countText } from "../../platform/text/quantities.ts";
import { type Column, VirtualGrid } from "./virtual_grid.tsx";

type Client = DiscoveryAnswer["clients"][number];

const AGAIN_MS = 5_000;
const search = signal("");

const COLUMNS: readonly Column<Client>[] = [
  {
    ...{ id: "state", title: "State", width: 92, need: 2 },
    cell: ({ state }) => <State state={state} />,
  },
  {
    ...{ id: "name", title: "Name", width: 150, grows: 3, need: 1 },
    cell: ({ name }) => <Said text={name} />,
  },
  {
    ...{ id: "count", title: "Resources", width: 88, need: 1, isNumber: true },
    cell: ({ kinds }) => countText(resourcesOf(kinds)),
  },
  {
    ...{ id: "form", title: "Form", width: 150, grows: 2, need: 4 },
    cell: ({ form, mode }) => peerText(`${form}, ${mode}`),
  },
  {
    ...{ id: "since", title: "Since", width: 110, need: 5 },
    cell: ({ since }) => <Ago at={since} />,
  },
  {
    ...{ id: "problem", title: "Problem", width: 160, grows: 3, need: 6 },
    cell: ({ problem }) => <Said text={problem ?? ""} />,
  },
];

const CHOICES: readonly FilterChoice[] = [
  { value: "", title: "all" },
  { value: "in sync", title: "in sync" },
  { value: "waiting", title: "waiting" },
  { value: "refused", title: "refused" },
];

/** What needs attention first. */
function clientRank({ state }: Client): number {
  return state === "refused" ? 0 : state === "in sync" ? 2 : 1;
}

/** See the module description. */
export function Discovery(): VNode {
  const asked = useAsked<DiscoveryAnswer>(ADMIN_PATHS.discovery, AGAIN_MS);
  const { name, query } = place.value;
  const state = query.get("state") ?? "";
  const text = search.value.trim().toLowerCase();
  const clients = asked.kind === "known" ? asked.answer.clients : [];
  const byName = useMemo(
    () => new Map(clients.map((client) => [client.name, client])),
    [clients],
  );
  const keys = useMemo(() =>
    [...byName.values()]
      .filter((client) =>
        (state === "" || client.state === state) &&
        (text === "" || client.name.toLowerCase().includes(text))
      )
      .sort((a, b) =>
        clientRank(a) - clientRank(b) || compareNames(a.name, b.name)
      )
      .map(({ name }) => name), [byName, state, text]);
  const open = byName.get(name);
  const kept = Object.fromEntries(query);
  return (
    <SplitView
      title="Discovery clients"
      isOpen={name !== ""}
      panel={open
        ? <ClientPanel client={open} />
        : <Nothing>No such client is connected.</Nothing>}
      onClose={() => goTo("discovery", "", kept)}
      tools={
        <>
          <Search label="Find a client" hint="name" text={search} />
          <Filters label="State" choices={CHOICES} chosen={state} />
          <p class="tally" role="status">
            {countText(keys.length)} of {countText(clients.length)}
          </p>
        </>
      }
    >
      <VirtualGrid<Client>
        label="Discovery clients"
        columns={COLUMNS}
        keys={keys}
        get={(key) => byName.get(key)}
        onOpen={(key) => goTo("discovery", key, kept)}
        openKey={name}
        narrow={({ state, form }) => (
          <>
            <State state={state} /> · {peerText(form)}
          </>
        )}
        empty={asked.kind === "failed"
          ? peerText(asked.message)
          : asked.kind === "waiting"
          ? "Waiting for the server …"
          : "No client of discovery is connected."}
      />
    </SplitView>
  );
}

function ClientPanel({ client }: { readonly client: Client }): VNode {
  return (
    <>
      <h2 class="panel-title">
        <Said text={client.name} />
      </h2>
      <div class="panel-state">
        <State state={client.state} />
        {client.since && <Ago at={client.since} />}
      </div>
      {client.problem && (
        <p class="problem is-bad">
          <Said text={client.problem} />
        </p>
      )}
      <Facts>
        <Fact name="Form">{peerText(client.form)}</Fact>
        <Fact name="Mode">{peerText(client.mode)}</Fact>
      </Facts>
      <h3>Resources</h3>
      <ul class="list rows">
        {client.kinds.map(({ kind, resources, state }) => (
          <li key={kind}>
            <span class="grow">
              <Said text={kind} />
              <div class="second">
                <Said text={state} />
              </div>
            </span>
            <span>{countText(resources)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function resourcesOf(kinds: Client["kinds"]): number {
  return kinds.reduce((sum, { resources }) => sum + resources, 0);
}
