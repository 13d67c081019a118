// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Everything that has to do with a real etcd: our client of it, the catalog's
 * source, `tunnel service register`, and `tunnel proxy` with all of them.
 *
 * Usage: `deno task lab etcd [REGEX]`; REGEX picks cases by their sentence. Ends
 * with `N passed, N failed, N skipped`; nothing is ever skipped.
 *
 * @module
 */

import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { ETCD_ACCESS_CASES } from "./etcd_access.ts";
import { ETCD_ANNOUNCEMENT_CASES } from "./etcd_announcements.ts";
import type { EtcdCases } from "./etcd_case.ts";
import { ETCD_FORWARDING_CASES } from "./etcd_forwarding.ts";
import { ETCD_HA_CASES } from "./etcd_ha.ts";
import { ETCD_MEMBER_CASES } from "./etcd_members.ts";
import { ETCD_SERVICE_CASES } from "./etcd_services.ts";
import { ETCD_STATE_CASES } from "./etcd_state.ts";
import { ETCD_WATCH_CASES } from "./etcd_watch.ts";
import { PROXY_ETCD_CASES } from "./proxy_etcd.ts";
import { PROXY_ETCD_ACCESS_CASES } from "./proxy_etcd_access.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { patience } from "../../tests/support/watch/patience.ts";

/** For one case; the longest kills six members one after the other. */
const CASE_TIMEOUT_MS = 120_000;

const CASES: EtcdCases = {
  ...ETCD_WATCH_CASES,
  ...ETCD_ACCESS_CASES,
  ...ETCD_SERVICE_CASES,
  ...ETCD_STATE_CASES,
  ...ETCD_HA_CASES,
  ...ETCD_FORWARDING_CASES,
  ...ETCD_ANNOUNCEMENT_CASES,
  ...ETCD_MEMBER_CASES,
  ...PROXY_ETCD_CASES,
  ...PROXY_ETCD_ACCESS_CASES,
};

async function main(): Promise<number> {
  const pattern = new RegExp(Deno.args[0] ?? ".");
  const tally = new Tally();
  endChildrenOnSignals(() => Promise.resolve());
  const workspace = await Workspace.make();
  try {
    await using cluster = await EtcdCluster.start(workspace);
    for (const [sentence, check] of Object.entries(CASES)) {
      if (!pattern.test(sentence)) continue;
      await tally.run(sentence, () => within(check({ cluster, workspace })));
    }
  } catch (error) {
    tally.fail("etcd starts", error);
  }
  await killAllChildren();
  if (tally.failed === 0) await workspace.remove();
  else console.log(`logs are in ${workspace.folder}`);
  return tally.end();
}

async function within(checking: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`not done after ${CASE_TIMEOUT_MS} ms`)),
    patience(CASE_TIMEOUT_MS),
  );
  try {
    await Promise.race([checking, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

if (import.meta.main) Deno.exit(await main());
