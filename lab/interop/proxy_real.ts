// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Real programs through `tunnel proxy` while the endpoints come and go by a file
 * that is rewritten several times a second: none of them may notice.
 *
 * Usage: `deno task lab proxy [REGEX]`; REGEX picks cases by their sentence.
 * Ends with `N passed, N failed, N skipped`; nothing is ever skipped.
 *
 * @module
 */

import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { PROXY_AGENT_CASES } from "./proxy_agents.ts";
import type { ProxyCases } from "./proxy_case.ts";
import { PROXY_DNS_CASES } from "./proxy_dns.ts";
import { PROXY_POSTGRES_CASES } from "./proxy_postgres.ts";
import { PROXY_TCP_CASES } from "./proxy_tcp.ts";
import { PROXY_UDP_CASES } from "./proxy_udp.ts";
import { Tally } from "../../tests/support/watch/tally.ts";

const CASES: ProxyCases = {
  ...PROXY_TCP_CASES,
  ...PROXY_POSTGRES_CASES,
  ...PROXY_UDP_CASES,
  ...PROXY_DNS_CASES,
  ...PROXY_AGENT_CASES,
};

async function main(): Promise<number> {
  const pattern = new RegExp(Deno.args[0] ?? ".");
  const tally = new Tally();
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  for (const [sentence, check] of Object.entries(CASES)) {
    if (!pattern.test(sentence)) continue;
    await tally.run(sentence, () => check(workspace));
  }
  await killAllChildren();
  if (tally.failed === 0) await workspace.remove();
  else console.log(`logs are in ${workspace.folder}`);
  return tally.end();
}

if (import.meta.main) Deno.exit(await main());
