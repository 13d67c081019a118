/**
 * Pages about joining, the state of servers, and Kubernetes.
 *
 * @module
 */

import { assertStringIncludes } from "@std/assert";
import { KubeCluster } from "../peers/kube_cluster.ts";
import type { DocsStage } from "./docs_stage.ts";
import { startEtcd } from "./etcd_member.ts";
import {
  AGENT_UP,
  SERVER_UP,
  startAgent,
  startServer,
  tokenIn,
} from "./node_joins.ts";
import type { PageRun, PageScript } from "./page_run.ts";

async function identity(page: PageRun): Promise<void> {
  const { stage } = page;
  const { hub, node } = stage;
  await page.start(hub, "server", SERVER_UP);
  const { said } = await page.run(hub, "token create", {
    says: new RegExp(
      "^tunnel token create: the server's address is the name .*\n" +
        "# On one node named edge-7, before \\S+:\n" +
        "tunnel agent --server \\S+ --join tnl1\\.\\S+ --node edge-7\n$",
    ),
  });
  await page.start(node, "agent", AGENT_UP, {
    with: { "tnl1.…": tokenIn(said) },
  });
  await stage.clear();
  await hub.must(
    "head -c 32 /dev/urandom > state.key; chmod 600 state.key",
  );
  await startEtcd(stage, "https", ["10.0.0.1", "10.0.0.2"]);
  const overEtcd = await page.start(hub, "server --state etcds", SERVER_UP);
  await overEtcd.stop();
  await overKubernetes(page);
  await page.run(hub, "token create --state etcds", {
    says: /--server edge\.example:8091 --join tnl1\./,
  });
  await otherWords(stage);
  await stage.clear();
  await hub.must("head -c 32 /dev/urandom > state.key; chmod 600 state.key");
  await startEtcd(stage, "https", ["10.0.0.1", "10.0.0.2"]);
  const old = await startServer(stage);
  await startAgent(stage, "edge-7");
  await stage.node.stop();
  await old.stop();
  await page.run(hub, "state copy", { says: /copied/i });
  await page.run(hub, "state check");
}

/** "`tunnel token`, `node` and `ca` take the same flags and run anywhere." */
async function otherWords({ hub }: DocsStage): Promise<void> {
  const state = "--state etcds://10.0.0.1:2379 --etcd-ca-cert ca.crt " +
    "--state-key-file state.key";
  for (const words of ["token list", "node list", "ca show"]) {
    await hub.must(`tunnel ${words} ${state}`);
  }
}

/** As in a Pod: what a kubelet mounts, and its two variables. */
async function overKubernetes(page: PageRun): Promise<void> {
  const { hub } = page.stage;
  const folder = hub.path("kubernetes");
  await Deno.mkdir(folder);
  await using cluster = await KubeCluster.start(folder, {
    controllerManager: true,
  });
  const manifest = new URL(
    "../../deploy/kubernetes/state.yaml",
    import.meta.url,
  );
  await cluster.kubectl(
    ["apply", "-f", "-"],
    await Deno.readTextFile(manifest),
  );
  const token = await cluster.kubectl(
    ["create", "token", "tunnel-server", "--namespace=tunnel-state"],
  );
  const mounted = "/run/secrets/kubernetes.io/serviceaccount";
  await Deno.mkdir(mounted, { recursive: true });
  await Deno.writeTextFile(`${mounted}/token`, token);
  await Deno.writeTextFile(`${mounted}/namespace`, "tunnel-state");
  await Deno.copyFile(cluster.caFile, `${mounted}/ca.crt`);
  const { hostname, port } = new URL(cluster.server);
  const env = {
    KUBERNETES_SERVICE_HOST: hostname,
    KUBERNETES_SERVICE_PORT: port,
  };
  await hub.must("rm -rf /var/lib/tunnel");
  const server = await page.start(hub, "server --state kub", SERVER_UP, {
    env,
  });
  const { code, said } = await hub.run(
    "tunnel node list --state kubernetes:tunnel-state " +
      "--state-key-file state.key",
    env,
  );
  if (code !== 0) throw new Error(`tunnel node list: ${said}`);
  await server.stop();
}

async function kubernetes(page: PageRun): Promise<void> {
  const { stage } = page;
  const { hub, node } = stage;
  await page.run(hub, "egress-config --uds-name");
  assertStringIncludes(
    await Deno.readTextFile(hub.path("egress.yaml")),
    "udsName: /run/tunnel/tunnel.sock\n",
  );
  await stage.issue(hub, "apiserver");
  await startServer(
    stage,
    "--uds-name /run/tunnel/tunnel.sock --server-port 0",
  );
  await startAgent(stage, "edge-1");
  await stage.answer(node, "127.0.0.1:80");
  const gateway = "unix:/etc/kubernetes/konnectivity.sock";
  await page.start(hub, "forward --frontend", /konnectivity\.sock -> /);
  const dialed = await hub.must(
    `tunnel dial edge-1:80 --server ${gateway} </dev/null`,
  );
  assertStringIncludes(dialed, "SSH-2.0");
  await page.run(hub, "egress-config --frontend");
  assertStringIncludes(
    await Deno.readTextFile(hub.path("egress.yaml")),
    "udsName: /etc/kubernetes/konnectivity.sock\n",
  );
  await stage.clear();
  await kubeletPort(page);
}

/** Something with a kubelet's certificate answers at the node. */
async function kubeletPort(page: PageRun): Promise<void> {
  const { stage } = page;
  const { hub, node } = stage;
  const authority = stage.authority.cert;
  for (const name of ["callers-ca", "kubelets-ca", "front-ca"]) {
    await hub.write(`${name}.crt`, authority);
  }
  await stage.issue(hub, "front", "server", ["server"]);
  await stage.issue(hub, "kubelet-client");
  await stage.issue(hub, "me");
  await stage.issue(node, "kubelet", "server", ["edge-1", "127.0.0.1"]);
  const kubelet = new URL("kubelet.ts", import.meta.url).pathname;
  await node.start(
    `${Deno.execPath()} run --quiet --allow-net --allow-read ${kubelet}`,
    /answering/,
  );
  await page.start(hub, "server … --kubelet-port", SERVER_UP, {
    with: { "… ": "" },
  });
  await startAgent(stage, "edge-1");
  assertStringIncludes(
    await hub.must(
      "curl -sS --cert me.crt --key me.key --cacert front-ca.crt " +
        "-H 'X-Tunnel-Proxy-Host: edge-1' " +
        "-H 'X-Tunnel-Proxy-Dest: 127.0.0.1:10250' https://server:10250/pods",
    ),
    "PodList",
  );
}

export const STATE_PAGES: Readonly<Record<string, PageScript>> = {
  "docs/identity.md": identity,
  "docs/kubernetes.md": kubernetes,
};
