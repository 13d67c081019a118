/**
 * `tunnel services`: what a running proxy serves, and where.
 *
 * @module
 */

import {
  environmentText,
  hostsText,
  type LocalName,
} from "../services/proxy/dns/local_names.ts";
import type { DiscoveryStatus } from "../services/proxy/ads/discovery_status.ts";
import type {
  PortStatus,
  ProxyStatus,
} from "../services/proxy/status/proxy_status.ts";
import { defineCommand, refuseOperands } from "./program/command.ts";
import { ExitCode } from "./program/exit_codes.ts";
import { parseHostPort } from "./flags/addresses.ts";
import { booleanFlag } from "./flags/flag.ts";
import { QUERY_FLAGS, queryProxy } from "./proxy/query.ts";
import { UsageError } from "./flags/usage_error.ts";
import { shortCount, textTable } from "../admin/ask/text_table.ts";

const FLAGS = {
  "env": booleanFlag(false, {
    group: "Where",
    help: "Print where services are as environment variables.",
  }),
  "hosts": booleanFlag(false, {
    group: "Where",
    help: "Print where services are as lines of /etc/hosts.",
  }),
  ...QUERY_FLAGS,
} as const;

/** See the module description. */
export const SERVICES_COMMAND = defineCommand({
  name: "services",
  summary: "Show what a proxy serves, and where",
  operands: "[flags]",
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
  async run({ operands, values }, context) {
    refuseOperands(operands);
    const forms = (["json", "env", "hosts"] as const)
      .filter((name) => values[name]);
    if (forms.length > 1) {
      throw new UsageError(
        `Cannot use --${forms[0]} together with --${forms[1]}: keep one`,
        "TUN101",
      );
    }
    const status = await queryProxy(context, values["proxy"]);
    const names = () => status.ports.flatMap(localName);
    switch (forms[0]) {
      case "json":
        context.print(`${JSON.stringify(status, null, 2)}\n`);
        break;
      case "env":
        context.print(environmentText(names()));
        break;
      case "hosts":
        context.print(hostsText(names()));
        break;
      case undefined:
        context.print(servicesText(status));
    }
    return ExitCode.OK;
  },
});

/** For people. */
export function servicesText(
  { ports, sources, discovery, draining }: ProxyStatus,
): string {
  const rows = ports.map((port) => [
    portText(port),
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
  const table = textTable([
    "SERVICE",
    "PORT",
    "SERVED ON",
    "SOURCE",
    "IN USE",
    "OPEN",
    "CLIENTS",
    "REFUSED",
    "FROM",
    "TO",
    "PROBLEM OR LAST ERROR",
  ], rows);
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
  { state, server, mode, node, kinds, waiting, recalledFrom, kept }:
    DiscoveryStatus,
): string[] {
  const lines = [
    state === "open"
      ? `discovery: ${node} follows ${server} (${mode})`
      : `discovery: ${node} follows no server (${state})`,
    ...recalledFrom === undefined
      ? []
      : [`discovery: what is served was kept at ${recalledFrom}`],
    ...Object.entries(kinds).flatMap(([kind, { refusal }]) =>
      refusal === undefined ? [] : `refused of ${kind}: ${refusal.message}`
    ),
    ...waiting.map(({ service, for: part }) => `${service} waits for ${part}`),
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

/** `file`; `file+etcd` where the endpoints are another one's. */
function sourceText({ source, endpointsSource }: PortStatus): string {
  if (source === undefined) return "-";
  return endpointsSource === undefined || endpointsSource === source
    ? source
    : `${source}+${endpointsSource}`;
}

function portText({ service, port }: PortStatus): string {
  return port === "" ? service : `${service}:${port}`;
}

function localName({ service, port, listening }: PortStatus): LocalName[] {
  if (listening === undefined) return [];
  const at = parseHostPort("address", listening);
  return [{ service, port, address: { hostname: at.host, port: at.port } }];
}
