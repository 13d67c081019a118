/**
 * Servers that have their state in a real API server, with the rights of
 * `deploy/kubernetes/state.yaml` and no others.
 *
 * @module
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  stateCases,
  StateServers,
} from "../../tests/support/rigs/state_servers.ts";
import type { KubeCases, KubeContext } from "./kube_case.ts";

const MANIFEST = new URL("../../deploy/kubernetes/state.yaml", import.meta.url);
const NAMESPACE = "tunnel-state";

/** Servers of a namespace in which nothing was before. */
async function serversOn(
  { cluster, workspace }: KubeContext,
): Promise<StateServers> {
  const gone = ["delete", "namespace", NAMESPACE, "--ignore-not-found"];
  await cluster.kubectl([...gone, "--wait=true"]);
  const manifest = await Deno.readTextFile(MANIFEST);
  await cluster.kubectl(["apply", "-f", "-"], manifest);
  const token = await cluster.kubectl(
    ["create", "token", "tunnel-server", `--namespace=${NAMESPACE}`],
  );
  const key = workspace.path("state.key");
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  await Deno.writeFile(key, bytes, { mode: 0o600 });
  return new StateServers(workspace, [
    `--state=kubernetes:${NAMESPACE}`,
    `--kubeconfig=${await cluster.kubeconfig("state", { token })}`,
    `--state-key-file=${key}`,
  ]);
}

export const KUBE_STATE_CASES: KubeCases = {
  ...stateCases("Kubernetes", serversOn),
  "state in Kubernetes: no private key can be read there": async (context) => {
    await using at = await serversOn(context);
    await at.start();
    const { items } = JSON.parse(
      await context.cluster.kubectl(
        ["get", "secrets", `--namespace=${NAMESPACE}`, "--output=json"],
      ),
    );
    const texts = items.map(({ data }: { data: { record: string } }) =>
      atob(data.record)
    );
    assert(texts.some((text: string) => text.includes("A256GCM")));
    for (const text of texts) assert(!text.includes("PRIVATE KEY"), text);
  },

  "state in Kubernetes: the API server goes, links stay, changes wait, and it comes back":
    async (context) => {
      await using at = await serversOn(context);
      const server = await at.start();
      const { folder } = await at.join(
        "gw",
        await at.token("--node=gw"),
        server,
      );
      const waiting = await at.token("--node=late");
      await context.cluster.restartApiServer(async () => {
        await server.child.untilPrinted(/the state in Kubernetes is away/);
        const refused = await at.join("late", waiting, server);
        assertEquals(refused.success, false);
        await at.link(folder, server);
        assertStringIncludes(
          await (await fetch(`${server.healthUrl}/readyz?verbose`)).text(),
          "the state in Kubernetes is away",
        );
      });
      await server.child.untilPrinted(/the state in Kubernetes is back/);
      const joined = await at.join("late", waiting, server);
      assert(joined.success, joined.stderr);
    },

  "state in Kubernetes: without the rights it is said which": async (
    context,
  ) => {
    await using at = await serversOn(context);
    await context.cluster.kubectl(
      ["delete", "rolebinding", "tunnel-state", `--namespace=${NAMESPACE}`],
    );
    const { success, stderr } = await at.run("node", "list");
    assertEquals(success, false);
    assertStringIncludes(stderr, "403 Forbidden");
  },
};
