/**
 * `tunnel endpoints`: the endpoints of a service, as a running proxy sees them.
 *
 * @module
 */

import { keyFrom } from "../services/catalog/model/model.ts";
import type { PortStatus } from "../services/proxy/status/proxy_status.ts";
import { defineCommand } from "./program/command.ts";
import { CommandFailure, ExitCode } from "./program/exit_codes.ts";
import { QUERY_FLAGS, queryProxy } from "./proxy/query.ts";
import { UsageError } from "./flags/usage_error.ts";
import { shortCount, textTable } from "../admin/ask/text_table.ts";

/** See the module description. */
export const ENDPOINTS_COMMAND = defineCommand({
  name: "endpoints",
  summary: "Show a service's endpoints, and why they are left out",
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
    const [name, ...others] = operands;
    if (name === undefined || others.length > 0) {
      throw new UsageError(
        "Cannot show endpoints: wanted tunnel endpoints [NAMESPACE/]SERVICE",
        "TUN101",
      );
    }
    const service = keyFrom(name);
    const { ports } = await queryProxy(context, values["proxy"], service);
    if (ports.length === 0) {
      throw new CommandFailure(
        ExitCode.FAILURE,
        `Cannot show endpoints: the proxy knows no service ${service}; ` +
          "tunnel services lists those that it has",
        undefined,
        "TUN123",
      );
    }
    context.print(
      values["json"]
        ? `${JSON.stringify(ports, null, 2)}\n`
        : ports.map(endpointsText).join("\n"),
    );
    return ExitCode.OK;
  },
});

/** For people. */
export function endpointsText(port: PortStatus): string {
  const { service, number, protocol, listening, problem } = port;
  const name = port.port === "" ? service : `${service}:${port.port}`;
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
  return head + textTable([
    "ENDPOINT",
    "STATE",
    "VIA",
    "ZONE",
    "WEIGHT",
    "OPEN",
    "TOTAL",
    "FAILED",
    "SENT",
    "RECEIVED",
    "WHY, OR LAST ERROR",
  ], rows);
}
