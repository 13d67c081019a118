// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Envoy and gRPC applications, configured by a discovery server: ours, and as a
 * control the reference on go-control-plane, which gets the same cases.
 *
 * Usage: `deno task lab xds [--server ours|gcp-linear|gcp-snapshot] [REGEX]`; REGEX
 * picks cases by their sentence; without `--server` ours and `gcp-linear` take
 * turns. Ends with `N passed, N failed, N skipped`; nothing is ever skipped.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import type { DiscoveryMaker } from "../../tests/support/peers/discovery_server.ts";
import { type Cases, runCases } from "./case_runner.ts";
import { ABSENCE_CASES } from "./xds/absence_cases.ts";
import { CATALOG_CASES } from "./xds/catalog_cases.ts";
import { ENVOY_CASES } from "./xds/envoy_cases.ts";
import { FAILOVER_CASES } from "./xds/failover_cases.ts";
import { GRPC_CASES, SPOILT_GRPC_CASES } from "./xds/grpc_cases.ts";
import { ORDER_CASES } from "./xds/order_cases.ts";
import { RELAY_CASES } from "./xds/relay_cases.ts";
import { SERVER_FAILOVER_CASES } from "./xds/server_failover_cases.ts";
import {
  startBackends,
  type XdsCases,
  type XdsContext,
} from "./xds/xds_case.ts";

const CONTROL: XdsCases = {
  ...GRPC_CASES,
  ...SPOILT_GRPC_CASES,
  ...ENVOY_CASES,
};

const CASES: Readonly<Record<DiscoveryMaker, XdsCases>> = {
  "ours": {
    ...GRPC_CASES,
    ...ENVOY_CASES,
    ...ABSENCE_CASES,
    ...CATALOG_CASES,
    ...FAILOVER_CASES,
    ...SERVER_FAILOVER_CASES,
    ...ORDER_CASES,
    ...RELAY_CASES,
  },
  "gcp-linear": CONTROL,
  "gcp-snapshot": CONTROL,
};

/** They wait for most of their time: for servers that begin, or stay away. */
const AT_ONCE = 3;
const TIMEOUT_MS = 300_000;

/** The cases of these makers, by whose they are. */
function casesOf(
  makers: readonly DiscoveryMaker[],
): Cases<Omit<XdsContext, "maker">> {
  return Object.fromEntries(
    makers.flatMap((maker) =>
      Object.entries(CASES[maker]).map(([sentence, check]) => [
        `${maker}: ${sentence}`,
        (shared: Omit<XdsContext, "maker">) => check({ ...shared, maker }),
      ])
    ),
  );
}

async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, { string: ["server"] });
  const makers = String(flags.server ?? "gcp-linear,ours").split(",");
  const unknown = makers.find((maker) => !Object.hasOwn(CASES, maker));
  if (unknown !== undefined) {
    console.error(`unknown server '${unknown}': ${Object.keys(CASES)}`);
    return 2;
  }
  return await runCases({
    cases: casesOf(makers as DiscoveryMaker[]),
    start: async (workspace) => ({
      workspace,
      backends: await startBackends(workspace),
    }),
    ...{ timeoutMs: TIMEOUT_MS, atOnce: AT_ONCE },
    pattern: new RegExp(String(flags._[0] ?? ".")),
  });
}

if (import.meta.main) Deno.exit(await main());
