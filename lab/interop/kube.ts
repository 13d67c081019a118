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

import { KubeCluster } from "../peers/kube_cluster.ts";
import { runCases } from "./case_runner.ts";
import { KUBE_CATALOG_CASES } from "./kube_catalog.ts";
import { KUBE_CLIENT_CASES } from "./kube_client.ts";
import { KUBE_CSR_CASES } from "./kube_csr.ts";
import { KUBE_KUBEADM_CASES } from "./kube_kubeadm.ts";
import { KUBE_LEASE_CASES } from "./kube_leases.ts";
import { KUBE_MANIFEST_CASES } from "./kube_manifests.ts";
import { KUBE_MIGRATION_CASES } from "./kube_migration.ts";
import { KUBE_STATE_CASES } from "./kube_state.ts";
import { KUBE_MEMBER_CASES } from "./kube_members.ts";
import { KUBE_TOKEN_CASES } from "./kube_tokens.ts";
import { PROXY_KUBE_CASES } from "./proxy_kube.ts";

if (import.meta.main) {
  const code = await runCases({
    cases: {
      ...KUBE_CLIENT_CASES,
      ...KUBE_TOKEN_CASES,
      ...KUBE_LEASE_CASES,
      ...KUBE_STATE_CASES,
      ...KUBE_MANIFEST_CASES,
      ...KUBE_MEMBER_CASES,
      ...KUBE_CATALOG_CASES,
      ...PROXY_KUBE_CASES,
      ...KUBE_CSR_CASES,
      ...KUBE_KUBEADM_CASES,
      ...KUBE_MIGRATION_CASES,
    },
    start: async (workspace, stack) => {
      const cluster = await KubeCluster.start(workspace.folder, {
        controllerManager: true,
      });
      return { workspace, cluster: stack.use(cluster) };
    },
    // The longest scales eight processes three times.
    timeoutMs: 180_000,
  });
  Deno.exit(code);
}
