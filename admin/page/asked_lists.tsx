/**
 * Lists that are asked for again and again: certificates, clients of discovery,
 * services and their endpoints.
 *
 * @module
 */

import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type {
  CertificatesAnswer,
  DiscoveryAnswer,
  ServicesAnswer,
} from "../../proto/admin/list_answers.ts";
import {
  ageOf,
  type Column,
  column,
  numbers,
  stateCell,
  tableOf,
  whenText,
} from "../view/cells.ts";
import { expiryCell } from "../view/status.ts";
import { CellText, SectionRows, ViewFacts } from "./cell.tsx";
import { listView } from "./list_view.tsx";
import { Ago, Nothing, PanelTitle } from "./marks.tsx";
import { clock } from "./server_state.ts";
import { gridColumns } from "./virtual_grid.tsx";
import { countText } from "../../platform/text/quantities.ts";
import { peerText } from "./units.ts";

type Certificate = CertificatesAnswer["certificates"][number];

const CERTIFICATE_COLUMNS: readonly Column<Certificate>[] = [
  { heading: "USE", of: ({ use }) => use },
  { heading: "EXPIRES IN", of: expiry },
  { heading: "RENEWED", of: ({ renewal }) => renewal },
  { heading: "GOOD FROM", of: ({ notBefore }) => whenText(notBefore) },
  { heading: "GOOD UNTIL", of: ({ notAfter }) => whenText(notAfter) },
  { heading: "SUBJECT", of: ({ subject }) => subject },
  { heading: "ISSUER", of: ({ issuer }) => issuer },
  { heading: "PROBLEM", of: ({ problem = "" }) => problem },
];

/** See the module description. */
export const Certificates = listView<Certificate, CertificatesAnswer>({
  ...{ view: "certificates", title: "Certificates" },
  find: ["a certificate", "use, subject"],
  choices: () => [
    { value: "", title: "all" },
    { value: "by hand", title: "renewed by hand" },
    { value: "problem", title: "with a problem" },
  ],
  columns: gridColumns(CERTIFICATE_COLUMNS, {
    "USE": [150, 1, 2],
    "EXPIRES IN": [96, 1],
    "RENEWED": [84, 2],
    "SUBJECT": [150, 3, 2],
    "ISSUER": [130, 5, 1],
    "PROBLEM": [150, 4, 2],
  }),
  asked: {
    ...{ path: ADMIN_PATHS.certificates, everyMs: 30_000 },
    items: ({ certificates }) => certificates,
  },
  nameOf: ({ use, subject, notAfter }) => `${use} ${subject} ${notAfter}`,
  rank: ({ notAfter }) => notAfter,
  isLike: ({ renewal, problem }, state) =>
    renewal === state || (state === "problem" && problem !== undefined),
  words: ({ use, subject }) => [use, subject],
  narrow: ({ renewal }) => `renewed ${renewal}`,
  panel: (_name, item) => ifThere(CertificatePanel, item),
  none: () => "There is no certificate like that.",
});

function ifThere<T>(
  shown: (item: T) => VNode,
  item: T | undefined,
): VNode {
  return item === undefined
    ? <Nothing>There is none of that name any more.</Nothing>
    : shown(item);
}

function CertificatePanel(certificate: Certificate): VNode {
  return (
    <>
      <PanelTitle name={certificate.use} problem={certificate.problem} />
      <ViewFacts
        facts={CERTIFICATE_COLUMNS.slice(1, -1).map(({ heading, of }) => ({
          name: heading,
          value: of(certificate, clock.value),
        }))}
      />
    </>
  );
}

function expiry({ notAfter, renewal }: Certificate, nowMs: number) {
  return expiryCell(notAfter, renewal, nowMs);
}

type Client = DiscoveryAnswer["clients"][number];

const CLIENT_COLUMNS: readonly Column<Client>[] = [
  { heading: "STATE", of: ({ state }) => stateCell(state) },
  { heading: "NAME", of: ({ name }) => name },
  numbers(
    "RESOURCES",
    ({ kinds }) =>
      countText(kinds.reduce((sum, { resources }) => sum + resources, 0)),
  ),
  { heading: "FORM", of: ({ form, mode }) => `${form}, ${mode}` },
  { heading: "FOR", of: ({ since }, nowMs) => ageOf(since, nowMs) },
  { heading: "PROBLEM", of: ({ problem = "" }) => problem },
];

const KINDS: readonly Column<Client["kinds"][number]>[] = [
  column("KIND", ({ kind }) => kind, { part: "name" }),
  column("STATE", ({ state }) => state, { part: "under" }),
  column("RESOURCES", ({ resources }) => countText(resources), {
    part: "value",
  }),
];

/** What needs attention first. */
const RANKS: Readonly<Record<Client["state"], number>> = {
  "refused": 0,
  "waiting": 1,
  "in sync": 2,
};

/** See the module description. */
export const Discovery = listView<Client, DiscoveryAnswer>({
  ...{ view: "discovery", title: "Discovery clients" },
  find: ["a client", "name"],
  choices: () => [
    { value: "", title: "all" },
    ...Object.keys(RANKS).reverse().map((value) => ({ value, title: value })),
  ],
  columns: gridColumns(CLIENT_COLUMNS, {
    "STATE": [92, 2],
    "NAME": [150, 1, 3],
    "RESOURCES": [88, 1],
    "FORM": [150, 4, 2],
    "FOR": [80, 5],
    "PROBLEM": [160, 6, 3],
  }),
  asked: {
    ...{ path: ADMIN_PATHS.discovery, everyMs: 5_000 },
    items: ({ clients }) => clients,
  },
  nameOf: ({ name }) => name,
  rank: ({ state, name }) => `${RANKS[state]} ${name}`,
  isLike: (client, state) => client.state === state,
  words: ({ name }) => [name],
  narrow: ({ state, form }) => (
    <>
      <CellText cell={stateCell(state)} /> · {peerText(form)}
    </>
  ),
  panel: (_name, item) => ifThere(ClientPanel, item),
  none: () => "No client of discovery is connected.",
});

function ClientPanel(client: Client): VNode {
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

type Service = ServicesAnswer["services"][number];

const SERVICE_COLUMNS: readonly Column<Service>[] = [
  { heading: "STATE", of: (service) => stateCell(stateOf(service)) },
  { heading: "NAME", of: ({ name }) => name },
  numbers("READY", readyText),
  { heading: "PORTS", of: ({ ports }) => ports.join(", ") },
  { heading: "SOURCE", of: ({ source }) => source },
  {
    heading: "PROBLEM",
    of: ({ problem, lastError }) => problem ?? lastError ?? "",
  },
];

const ENDPOINTS: readonly Column<Service["endpoints"][number]>[] = [
  column("ENDPOINT", ({ address }) => address, { part: "name" }),
  column(
    "NODE",
    ({ node }) =>
      node === undefined
        ? "-"
        : { text: node, to: { view: "nodes", name: node } },
    { part: "under" },
  ),
  column("STATE", ({ isReady }) => stateCell(isReady ? "ready" : "not ready"), {
    part: "value",
  }),
];

/** See the module description. */
export const Services = listView<Service, ServicesAnswer>({
  ...{ view: "services", title: "Services" },
  find: ["a service", "name, source"],
  choices: () => [
    { value: "", title: "all" },
    { value: "ok", title: "ok" },
    { value: "not ready", title: "not ready" },
    { value: "failed", title: "with a problem" },
  ],
  columns: gridColumns(SERVICE_COLUMNS, {
    "STATE": [104, 2],
    "NAME": [150, 1, 3],
    "READY": [80, 1],
    "PORTS": [130, 3, 1],
    "SOURCE": [130, 4, 1],
    "PROBLEM": [160, 5, 3],
  }),
  asked: {
    ...{ path: ADMIN_PATHS.services, everyMs: 10_000 },
    items: ({ services }) => services,
  },
  nameOf: ({ name }) => name,
  isLike: (service, state) => stateOf(service) === state,
  words: ({ name, source }) => [name, source],
  narrow: (service) => (
    <>
      <CellText cell={stateCell(stateOf(service))} /> ·{" "}
      {peerText(service.ports.join(", "))}
    </>
  ),
  panel: (_name, item) => ifThere(ServicePanel, item),
  none: () =>
    "There is no service like that. A server has services when it runs with " +
    "--discovery.",
});

function ServicePanel(service: Service): VNode {
  const { name, problem, lastError, source, ports, endpoints } = service;
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
          ...(lastError === undefined
            ? []
            : [{ name: "last error", value: lastError }]),
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
