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
import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import type { DiscoveryMaker } from "../peers/discovery_server.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { ABSENCE_CASES } from "./xds/absence_cases.ts";
import { CATALOG_CASES } from "./xds/catalog_cases.ts";
import { ENVOY_CASES } from "./xds/envoy_cases.ts";
import { FAILOVER_CASES } from "./xds/failover_cases.ts";
import { GRPC_CASES, SPOILT_GRPC_CASES } from "./xds/grpc_cases.ts";
import { ORDER_CASES } from "./xds/order_cases.ts";
import { RELAY_CASES } from "./xds/relay_cases.ts";
import { SERVER_FAILOVER_CASES } from "./xds/server_failover_cases.ts";
import { startBackends, type XdsCases } from "./xds/xds_case.ts";

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

async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, { string: ["server"] });
  const pattern = new RegExp(String(flags._[0] ?? "."));
  const makers = String(flags.server ?? "gcp-linear,ours").split(",");
  const tally = new Tally();
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  const backends = await startBackends(workspace);
  for (const maker of makers) {
    if (!(maker in CASES)) {
      console.error(`unknown server '${maker}': ${Object.keys(CASES)}`);
      return 2;
    }
    const context = { workspace, backends, maker: maker as DiscoveryMaker };
    const cases = Object.entries(CASES[context.maker])
      .filter(([sentence]) => pattern.test(sentence));
    // All take from one list, in which they see what others have taken.
    const waiting = cases.values();
    const takeTurns = async () => {
      for (const [sentence, check] of waiting) {
        await tally.run(`${maker}: ${sentence}`, () => check(context));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, takeTurns));
  }
  await killAllChildren();
  if (tally.failed === 0) await workspace.remove();
  else console.log(`logs are in ${workspace.folder}`);
  return tally.end();
}

if (import.meta.main) Deno.exit(await main());
