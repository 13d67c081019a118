/**
 * Everything that has to do with a real etcd: our client of it, the catalog's
 * source, `tunnel service register`, and `tunnel proxy` with all of them.
 *
 * Usage: `deno task lab etcd [REGEX]`; REGEX picks cases by their sentence. Ends
 * with `N passed, N failed, N skipped`; nothing is ever skipped.
 *
 * @module
 */

import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { runCases } from "./case_runner.ts";
import { ETCD_ACCESS_CASES } from "./etcd_access.ts";
import { ETCD_MEMBER_CASES } from "./etcd_members.ts";
import { ETCD_SERVICE_CASES } from "./etcd_services.ts";
import { ETCD_STATE_CASES } from "./etcd_state.ts";
import { ETCD_WATCH_CASES } from "./etcd_watch.ts";
import { PROXY_ETCD_CASES } from "./proxy_etcd.ts";

if (import.meta.main) {
  const code = await runCases({
    cases: {
      ...ETCD_WATCH_CASES,
      ...ETCD_ACCESS_CASES,
      ...ETCD_SERVICE_CASES,
      ...ETCD_STATE_CASES,
      ...ETCD_MEMBER_CASES,
      ...PROXY_ETCD_CASES,
    },
    start: async (workspace, stack) => ({
      workspace,
      cluster: stack.use(await EtcdCluster.start(workspace)),
    }),
    // The longest kills six members one after the other.
    timeoutMs: 120_000,
  });
  Deno.exit(code);
}
