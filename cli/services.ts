/**
 * `tunnel services` and `tunnel endpoints`: what a running proxy serves, where, and
 * from which endpoints.
 *
 * @module
 */

import {
  environmentText,
  hostsText,
  type LocalName,
} from "../services/proxy/dns/local_names.ts";
import type { DiscoveryStatus } from "../services/proxy/ads/ads_source.ts";
import {
  type PortStatus,
  PROXY_STATUS_PATH,
  type ProxyStatus,
} from "../services/proxy/status/proxy_status.ts";
import {
  type CommandContext,
  defineCommand,
  onlyOperand,
} from "./program/command.ts";
import { failure } from "./program/exit_codes.ts";
import { parseHostPort } from "./flags/addresses.ts";
import { flag } from "./flags/flag.ts";
import { UsageError } from "./flags/usage_error.ts";
import { shortCount } from "../platform/text/quantities.ts";
import { textTable } from "../admin/ask/text_table.ts";
import { keyFrom } from "../services/catalog/model/model.ts";
import { PROXY_ADMIN_PORT } from "./flags/admin_flags.ts";
import { askedClient } from "./program/answer_output.ts";

const WHERE = "Where";

/** Flags of both commands. */
const QUERY_FLAGS = {
  "proxy": flag.text(`127.0.0.1:${PROXY_ADMIN_PORT}`, {
    group: WHERE,
    placeholder: "HOST:PORT",
    help: "Admin port of the proxy, or of the agent that has one.",
  }),
  "json": flag.boolean(false, { group: WHERE, help: "Print JSON." }),
} as const;

const FLAGS = {
  "env": flag.boolean(false, {
    group: "Where",
    help: "Print where services are as environment variables.",
  }),
  "hosts": flag.boolean(false, {
    group: "Where",
    help: "Print where services are as lines of /etc/hosts.",
  }),
  ...QUERY_FLAGS,
} as const;

/** Its services, and their addresses. */
export const SERVICES_COMMAND = defineCommand({
  name: "services",
  about: [
    "Asks a running tunnel proxy. Bytes are those from and to clients; IN USE " +
    "is how many endpoints get new connections.",
  ],
  examples: [
    "tunnel services",
    "tunnel services --json",
    "tunnel services --env",
  ],
  rights: "network",
  flags: FLAGS,
  async run({ values }, context) {
    const forms = (["json", "env", "hosts"] as const)
      .filter((name) => values[name]);
    if (forms.length > 1) {
      throw new UsageError(
        `Cannot use --${forms[0]} together with --${forms[1]}: keep one`,
      );
    }
    const status = await queryProxy(context, values["proxy"]);
    const names = () => status.services.flatMap(localName);
    switch (forms[0]) {
      case "json":
        context.print(`${JSON.stringify(status, null, 2)}\n`);
        break;
      case "env":
        context.print(
          environmentText(
            names(),
            (line) => context.printError(`tunnel services: ${line}\n`),
          ),
        );
        break;
      case "hosts":
        context.print(hostsText(names()));
        break;
      case undefined:
        context.print(servicesText(status));
    }
  },
});

/** For people. */
export function servicesText(
  { services, sources, discovery, draining }: ProxyStatus,
): string {
  const rows = services.map((port) => [
    port.name,
    `${port.number}/${port.protocol}`,
    port.listening ?? "-",
    sourceText(port),
    `${
      port.endpoints.filter(({ use }) => use === "in use").length
    }/${port.endpoints.length}`,
    String(port.open),
    shortCount(port.accepted),
    shortCount(port.refused),
    shortCount(port.bytesFromClients),
    shortCount(port.bytesToClients),
    port.problem ?? port.lastError ?? displacedText(port),
  ]);
  const table = textTable(
    "SERVICE | PORT | SERVED ON | SOURCE | IN USE | OPEN | CLIENTS | REFUSED | FROM | TO | PROBLEM OR LAST ERROR",
    rows,
  );
  const notes = sources
    .filter(({ problem }) => problem !== undefined)
    .map(({ name, problem }) => `source ${name}: ${problem}\n`);
  if (discovery !== undefined) notes.push(...discoveryLines(discovery));
  if (draining > 0) {
    notes.push(`${draining} connections of services that are gone\n`);
  }
  return table + notes.join("");
}

function discoveryLines(
  { state, server, mode, node, kinds, recalledFrom, kept }: DiscoveryStatus,
): string[] {
  const lines = [
    state === "open"
      ? `discovery: ${node} follows ${server} (${mode})`
      : `discovery: ${node} follows no server (${state})`,
    ...recalledFrom === undefined
      ? []
      : [`discovery: the served state was saved at ${recalledFrom}`],
    ...Object.entries(kinds).flatMap(([kind, { refusal }]) =>
      refusal === undefined ? [] : `refused of ${kind}: ${refusal.message}`
    ),
    ...kept?.problem === undefined
      ? []
      : [`discovery: ${kept.path} is not written: ${kept.problem}`],
  ];
  return lines.map((line) => `${line}\n`);
}

function displacedText({ displacedBy }: PortStatus): string {
  return displacedBy === undefined
    ? ""
    : `its name makes the address of ${displacedBy}; this one is kept for it`;
}

/** `file`; `file+etcd` when the endpoints come from another source. */
function sourceText({ source, endpointsSource }: PortStatus): string {
  if (source === "") return "-";
  return endpointsSource === undefined || endpointsSource === source
    ? source
    : `${source}+${endpointsSource}`;
}

function localName({ service, port, listening }: PortStatus): LocalName[] {
  if (listening === undefined) return [];
  const at = parseHostPort("address", listening);
  return [{ service, port, address: { hostname: at.host, port: at.port } }];
}

/** The endpoints of one service, as it sees them. */
export const ENDPOINTS_COMMAND = defineCommand({
  name: "endpoints",
  operands: "[NAMESPACE/]SERVICE [flags]",
  about: [
    "Asks a running tunnel proxy. An endpoint that is ejected failed several " +
    "dials in a row and is tried again soon; one that is ill failed its health " +
    "check. When all are left out, none is.",
  ],
  examples: ["tunnel endpoints web", "tunnel endpoints shop/db --json"],
  rights: "network",
  flags: QUERY_FLAGS,
  async run({ operands, values }, context) {
    const service = keyFrom(onlyOperand(
      operands,
      "Cannot show endpoints: wanted tunnel endpoints [NAMESPACE/]SERVICE",
    ));
    const { services } = await queryProxy(context, values["proxy"], service);
    if (services.length === 0) {
      throw failure(
        `Cannot show endpoints: the proxy knows no service ${service}; ` +
          "tunnel services lists those that it has",
        "TUN123",
      );
    }
    context.print(
      values["json"]
        ? `${JSON.stringify(services, null, 2)}\n`
        : services.map(endpointsText).join("\n"),
    );
  },
});

/** For people. */
export function endpointsText(port: PortStatus): string {
  const { name, number, protocol, listening, problem } = port;
  const where = listening === undefined ? "nowhere" : `on ${listening}`;
  const because = problem === undefined ? "" : ` (${problem})`;
  const affinity = port.affinity === "none"
    ? ""
    : port.affinityClients === undefined
    ? ", affinity by the client's address"
    : `, ${port.affinityClients} clients with affinity`;
  const head = `${name} ${number}/${protocol}, served ${where}${because}, ` +
    `${port.balance}${affinity}\n`;
  const rows = port.endpoints.map((endpoint) => [
    endpoint.address,
    endpoint.use,
    endpoint.via,
    endpoint.zone ?? "-",
    String(endpoint.weight),
    String(endpoint.open),
    shortCount(endpoint.total),
    shortCount(endpoint.failures),
    shortCount(endpoint.bytesSent),
    shortCount(endpoint.bytesReceived),
    endpoint.why ?? endpoint.lastError ?? "",
  ]);
  if (rows.length === 0) return `${head}no endpoints\n`;
  return head +
    textTable(
      "ENDPOINT | STATE | VIA | ZONE | WEIGHT | OPEN | TOTAL | FAILED | SENT | RECEIVED | WHY, OR LAST ERROR",
      rows,
    );
}

/**
 * The status of the proxy.
 *
 * @param service Only of this one: `namespace/name`.
 * @throws {AdminError} When it does not answer.
 */
export async function queryProxy(
  context: Pick<CommandContext, "printError">,
  at: string,
  service?: string,
): Promise<ProxyStatus> {
  const query = service === undefined
    ? ""
    : `?service=${encodeURIComponent(service)}`;
  const address = { kind: "tcp", ...parseHostPort("--proxy", at) } as const;
  const client = askedClient({ program: "proxy", address }, context);
  return await client.get<ProxyStatus>(PROXY_STATUS_PATH + query);
}
