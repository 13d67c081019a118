/**
 * `tunnel proxy` with a real etcd that wants certificates or users, and with
 * endpoints in it that are behind a real agent.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { startAgent, startServer } from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import type { EtcdCases } from "./etcd_case.ts";
import { registerService } from "./etcd_services.ts";
import { eventually } from "./kube_case.ts";
import { call, Callers, NamedBackend, ProxyRun } from "./proxied_services.ts";
import { endpoints, PORT_RANGE, spec } from "./proxy_etcd.ts";

/** A service of kube-proxy 0.4's is served before, in and after etcd's death. */
async function servesThroughDeath(
  workspace: Workspace,
  cluster: EtcdCluster,
  ...flags: readonly string[]
): Promise<void> {
  using a = new NamedBackend("a");
  using b = new NamedBackend("b");
  const port = freePort();
  await cluster.put(...spec("old", port));
  await cluster.put(...endpoints("old", a));
  await using proxy = await ProxyRun.start(
    workspace,
    "--local-addresses=original",
    ...flags,
  );
  await proxy.serves(1);
  await using callers = new Callers({ hostname: "127.0.0.1", port });
  await callers.onlyMeet("a");
  await cluster.stopMember(0, "SIGKILL");
  await eventually(
    "the proxy sees it",
    async () => (await proxy.source("etcd-registry")).problem !== undefined,
  );
  await callers.onlyMeet("a");
  await cluster.startMember(0);
  await cluster.ready();
  await cluster.put(...endpoints("old", b));
  await callers.onlyMeet("b");
  await callers[Symbol.asyncDispose]();
  assertEquals(callers.failures, []);
}

export const PROXY_ETCD_ACCESS_CASES: EtcdCases = {
  "the proxy shows etcd its certificate, by flags and by kube-proxy 0.4's file":
    async ({ workspace }) => {
      await using cluster = await EtcdCluster.start(workspace, {
        withTls: true,
      });
      const { ca, client: { cert, key } } = workspace.certificates;
      await servesThroughDeath(
        workspace,
        cluster,
        `--etcd-servers=${cluster.urls}`,
        ...[`--etcd-ca-cert=${ca}`, `--etcd-cert=${cert}`, `--etcd-key=${key}`],
      );
      const file = workspace.path("etcd.json");
      const config = { certFile: cert, keyFile: key, caCertFile: [ca] };
      await Deno.writeTextFile(
        file,
        JSON.stringify({ cluster: { machines: cluster.urls }, config }),
      );
      await servesThroughDeath(workspace, cluster, `--etcd_config=${file}`);
    },

  // A member that was restarted knows no tokens.
  "the proxy shows etcd a user and a password, again after a restart": async (
    { workspace },
  ) => {
    await using cluster = await EtcdCluster.start(workspace);
    const user = { name: "reader", password: "a secret" };
    await cluster.enableAuth([{ ...user, prefix: "/registry/services/" }]);
    const passwordFile = workspace.path("password");
    await Deno.writeTextFile(passwordFile, `${user.password}\n`);
    await servesThroughDeath(
      workspace,
      cluster,
      `--etcd-servers=${cluster.urls}`,
      ...["--etcd-user=reader", `--etcd-password-file=${passwordFile}`],
    );
  },

  "what registers behind an agent is served through that agent": async (
    { cluster, workspace },
  ) => {
    using backend = new NamedBackend("far");
    const server = await startServer(workspace, {
      maker: "ours",
      mode: "grpc",
      transport: "uds",
      extraFlags: ["--proxy-strategies=destHost,default"],
    });
    const agent = await startAgent(workspace, server, "ours", [
      "--agent-identifiers=host=edge-7",
    ]);
    if (server.frontend.transport !== "uds") throw new TypeError("No socket");
    await using proxy = await ProxyRun.start(
      workspace,
      `--etcd=${cluster.urls}`,
      `--server=unix:${server.frontend.path}`,
      PORT_RANGE,
    );
    await using _registered = await registerService(
      workspace,
      cluster,
      ...["behind", `--endpoint=${backend.address}`, "--service-port=80"],
      "--via=host=edge-7",
    );
    await proxy.uses("default/behind", `${backend.address}@host=edge-7`);
    const place = await proxy.place("default/behind");
    assertEquals(await call(place), "far");
    assertMatch(
      await proxy.says("endpoints", "behind"),
      / in use +agent host=edge-7 +- +1 +0 +1 +0 /,
    );
    await agent.child.stop("SIGKILL");
    await assertRejects(() => call(place), Deno.errors.ConnectionReset);
    await server.child.stop();
    await cluster.delete("/tunnel/services/default/behind");
  },
};
