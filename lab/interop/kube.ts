// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Everything that has to do with a real kube-apiserver: our client of it,
 * agents with ServiceAccount tokens or certificates of the cluster and servers
 * with leases, ours and Konnectivity's on either end, and `tunnel proxy`.
 *
 * Usage: `deno task lab kube [REGEX]`; REGEX picks cases by their sentence. Ends
 * with `N passed, N failed, N skipped`; nothing is ever skipped.
 *
 * @module
 */

import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { KubeCluster } from "../peers/kube_cluster.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import type { KubeCases } from "./kube_case.ts";
import { KUBE_CATALOG_CASES } from "./kube_catalog.ts";
import { KUBE_CLIENT_CASES } from "./kube_client.ts";
import { KUBE_CSR_CASES } from "./kube_csr.ts";
import { KUBE_HA_CASES } from "./kube_ha.ts";
import { KUBE_KUBELET_CASES } from "./kube_kubelet.ts";
import { KUBE_LEASE_CASES } from "./kube_leases.ts";
import { KUBE_STATE_CASES } from "./kube_state.ts";
import { KUBE_MEMBER_CASES } from "./kube_members.ts";
import { KUBE_TOKEN_CASES } from "./kube_tokens.ts";
import { PROXY_KUBE_CASES } from "./proxy_kube.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { patience } from "../../tests/support/watch/patience.ts";

/** For one case; the longest scales eight processes three times. */
const CASE_TIMEOUT_MS = 180_000;

const CASES: KubeCases = {
  ...KUBE_CLIENT_CASES,
  ...KUBE_TOKEN_CASES,
  ...KUBE_LEASE_CASES,
  ...KUBE_HA_CASES,
  ...KUBE_STATE_CASES,
  ...KUBE_MEMBER_CASES,
  ...KUBE_CATALOG_CASES,
  ...PROXY_KUBE_CASES,
  ...KUBE_CSR_CASES,
  ...KUBE_KUBELET_CASES,
};

async function main(): Promise<number> {
  const pattern = new RegExp(Deno.args[0] ?? ".");
  const tally = new Tally();
  endChildrenOnSignals(() => Promise.resolve());
  const workspace = await Workspace.make();
  try {
    await using cluster = await KubeCluster.start(workspace.folder, {
      controllerManager: true,
    });
    for (const [sentence, check] of Object.entries(CASES)) {
      if (!pattern.test(sentence)) continue;
      await tally.run(sentence, () => within(check({ cluster, workspace })));
    }
  } catch (error) {
    tally.fail("the cluster starts", error);
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
