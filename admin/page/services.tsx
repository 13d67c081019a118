/**
 * Services and where they are served.
 *
 * @module
 */

import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { ServicesAnswer } from "../../proto/admin/list_answers.ts";
import { useAsked } from "./asked.ts";
import { type FilterChoice, Filters, Search } from "./filters.tsx";
import { Fact, Facts, NodeLink, Nothing, Said, State } from "./marks.tsx";
import { compareNames } from "./ordered.ts";
import { peerText } from "./peer_text.ts";
import { goTo, place } from "./place.ts";
import { SplitView } from "./split_view.tsx";
import { countText } from "../../platform/text/quantities.ts";
import { type Column, VirtualGrid } from "./virtual_grid.tsx";

type Service = ServicesAnswer["services"][number];

const AGAIN_MS = 10_000;
const search = signal("");

const COLUMNS: readonly Column<Service>[] = [
  {
    ...{ id: "state", title: "State", width: 104, need: 2 },
    cell: (service) => <State state={stateOf(service)} />,
  },
  {
    ...{ id: "name", title: "Name", width: 150, grows: 3, need: 1 },
    cell: ({ name }) => <Said text={name} />,
  },
  {
    ...{ id: "ready", title: "Ready", width: 80, need: 1, isNumber: true },
    cell: readyText,
  },
  {
    ...{ id: "ports", title: "Ports", width: 130, grows: 1, need: 3 },
    cell: ({ ports }) => <Said text={ports.join(", ")} />,
  },
  {
    ...{ id: "source", title: "Source", width: 130, grows: 1, need: 4 },
    cell: ({ source }) => <Said text={source} />,
  },
  {
    ...{ id: "problem", title: "Problem", width: 160, grows: 3, need: 5 },
    cell: ({ problem }) => <Said text={problem ?? ""} />,
  },
];

const CHOICES: readonly FilterChoice[] = [
  { value: "", title: "all" },
  { value: "ok", title: "ok" },
  { value: "not ready", title: "not ready" },
  { value: "failed", title: "with a problem" },
];

/** See the module description. */
export function Services(): VNode {
  const asked = useAsked<ServicesAnswer>(ADMIN_PATHS.services, AGAIN_MS);
  const { name, query } = place.value;
  const state = query.get("state") ?? "";
  const text = search.value.trim().toLowerCase();
  const services = asked.kind === "known" ? asked.answer.services : [];
  const byName = useMemo(
    () => new Map(services.map((service) => [service.name, service])),
    [services],
  );
  const keys = useMemo(() =>
    [...byName.values()]
      .filter((service) =>
        (state === "" || stateOf(service) === state) &&
        (text === "" || service.name.toLowerCase().includes(text) ||
          service.source.toLowerCase().includes(text))
      )
      .map(({ name }) => name).sort(compareNames), [byName, state, text]);
  const open = byName.get(name);
  const kept = Object.fromEntries(query);
  return (
    <SplitView
      title="Services"
      isOpen={name !== ""}
      panel={open
        ? <ServicePanel service={open} />
        : <Nothing>There is no such service.</Nothing>}
      onClose={() => goTo("services", "", kept)}
      tools={
        <>
          <Search label="Find a service" hint="name, source" text={search} />
          <Filters label="State" choices={CHOICES} chosen={state} />
          <p class="tally" role="status">
            {countText(keys.length)} of {countText(services.length)}
          </p>
        </>
      }
    >
      <VirtualGrid<Service>
        label="Services"
        columns={COLUMNS}
        keys={keys}
        get={(key) => byName.get(key)}
        onOpen={(key) => goTo("services", key, kept)}
        openKey={name}
        narrow={(service) => (
          <>
            <State state={stateOf(service)} /> ·{" "}
            {peerText(service.ports.join(", "))}
          </>
        )}
        empty={emptyText(asked)}
      />
    </SplitView>
  );
}

function emptyText(asked: ReturnType<typeof useAsked<ServicesAnswer>>): string {
  if (asked.kind === "failed") return peerText(asked.message);
  if (asked.kind === "waiting") return "Waiting for the server …";
  return "There is no service like that. A server has services when it runs " +
    "with --discovery.";
}

function ServicePanel({ service }: { readonly service: Service }): VNode {
  return (
    <>
      <h2 class="panel-title">
        <Said text={service.name} />
      </h2>
      <div class="panel-state">
        <State state={stateOf(service)} />
        <span>{readyText(service)} ready</span>
      </div>
      {service.problem && (
        <p class="problem is-bad">
          <Said text={service.problem} />
        </p>
      )}
      <Facts>
        <Fact name="Source">
          <Said text={service.source} />
        </Fact>
        <Fact name="Ports">
          <Said text={service.ports.join(", ")} />
        </Fact>
      </Facts>
      <h3>Endpoints</h3>
      {service.endpoints.length === 0 && <Nothing>It has none.</Nothing>}
      <ul class="list rows">
        {service.endpoints.slice(0, 500).map((
          { address, node, isReady },
          at,
        ) => (
          <li key={at}>
            <span class="grow">
              <State state={isReady ? "ok" : "waiting"} isShort />{" "}
              <Said text={address} />
              {node !== undefined && (
                <div class="second">
                  on <NodeLink name={node} />
                </div>
              )}
            </span>
            <span>{isReady ? "ready" : "not ready"}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function stateOf({ problem, endpoints }: Service): string {
  if (problem !== undefined) return "failed";
  return endpoints.some(({ isReady }) => isReady) ? "ok" : "not ready";
}

function readyText({ endpoints }: Service): string {
  const ready = endpoints.filter(({ isReady }) => isReady).length;
  return `${countText(ready)}/${countText(endpoints.length)}`;
}
