/**
 * Services and endpoints in a real etcd: registered by `tunnel service`, found
 * by the catalog's source. kube-proxy 0.4's keys are served in `proxy_etcd.ts`.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Child } from "../../tests/support/program/child.ts";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { clientOf, type EtcdCases, FollowedSource } from "./etcd_case.ts";
import { eventually } from "./kube_case.ts";

/** A `tunnel service register` that has registered. */
export async function registerService(
  workspace: Workspace,
  cluster: EtcdCluster,
  ...flags: readonly string[]
): Promise<Child & AsyncDisposable> {
  const child = new Child({
    name: "tunnel service register",
    logFile: workspace.path("register.log"),
    command: ourCommand(
      "service",
      "register",
      ...flags,
      `--etcd=${cluster.urls}`,
      "--ttl=3s",
    ),
  });
  await child.untilPrinted(/is registered at/);
  return Object.assign(child, {
    [Symbol.asyncDispose]: () => child.stop("SIGKILL"),
  });
}

function endpointKeys(cluster: EtcdCluster, service: string) {
  return cluster.keys(`/tunnel/endpoints/${service}/`);
}

export const ETCD_SERVICE_CASES: EtcdCases = {
  "what is registered is found, and is gone at once on SIGTERM": async (
    { cluster, workspace },
  ) => {
    await using followed = new FollowedSource(clientOf(cluster));
    await followed.synced();
    const first = await registerService(
      workspace,
      cluster,
      ...["db", "--endpoint=10.0.0.7:5433", "--service-port=5432"],
    );
    await using _second = await registerService(
      workspace,
      cluster,
      ...["db", "--endpoint=10.0.0.8:5432", "--weight=3", "--via=host=edge-8"],
    );
    await eventually(
      "both are there",
      () => followed.endpoints("default/db").length === 2,
    );
    assertEquals(followed.endpoints("default/db"), [
      "10.0.0.7:5433",
      "10.0.0.8:5432",
    ]);
    const [, second] = followed.entries.endpoints.get("default/db")!;
    assertEquals(second!.weight, 3);
    assertEquals(second!.via, {
      kind: "agent",
      agent: { key: "host", value: "edge-8" },
    });
    const { ports } = followed.entries.services.get("default/db")!;
    assertEquals(ports, [{ name: "", port: 5432, protocol: "tcp" }]);
    await first.stop();
    // Faster than the lease would end by itself.
    await eventually(
      "the first is gone",
      () => followed.endpoints("default/db").join() === "10.0.0.8:5432",
      2_000,
    );
    assert(followed.entries.services.has("default/db"), "the service stays");
    assertEquals(followed.lines, []);
  },

  "a user registers with rights to its own keys and no others": async (
    { workspace },
  ) => {
    await using cluster = await EtcdCluster.start(workspace);
    const edge = { name: "edge", password: "a secret" };
    const prefix = "/tunnel/endpoints/default/web/";
    await cluster.enableAuth([{ ...edge, prefix }]);
    const passwordFile = workspace.path("password");
    await Deno.writeTextFile(passwordFile, `${edge.password}\n`);
    await using child = await registerService(
      workspace,
      cluster,
      ...["web", "--endpoint=10.0.0.7:1"],
      ...["--etcd-user=edge", `--etcd-password-file=${passwordFile}`],
    );
    assertEquals((await endpointKeys(cluster, "default/web")).length, 1);
    await child.stop();
    assertEquals((await endpointKeys(cluster, "default/web")).length, 0);
    const log = await child.logTail();
    assertEquals(log.trim().split("\n").length, 1, log);
  },

  "what dies is gone with its lease": async ({ cluster, workspace }) => {
    const child = await registerService(
      workspace,
      cluster,
      ...["dies", "--endpoint=10.0.0.7:1"],
    );
    // Longer than its lease would last without being renewed.
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    const [key] = await endpointKeys(cluster, "default/dies");
    assert(key !== undefined, "it is renewed");
    assert(BigInt(key.lease) > 2n ** 53n, "a lease that fits no number");
    await child.stop("SIGKILL");
    await eventually(
      "the key is gone",
      async () => (await endpointKeys(cluster, "default/dies")).length === 0,
      10_000,
    );
  },

  "a lease that is lost is replaced": async ({ cluster, workspace }) => {
    await using child = await registerService(
      workspace,
      cluster,
      ...["lost", "--endpoint=10.0.0.7:1"],
    );
    const [before] = await endpointKeys(cluster, "default/lost");
    await cluster.call("/v3/lease/revoke", { ID: before!.lease });
    assertEquals((await endpointKeys(cluster, "default/lost")).length, 0);
    await eventually("it is there again", async () => {
      const [now] = await endpointKeys(cluster, "default/lost");
      return now !== undefined && now.lease !== before!.lease;
    });
    await child.untilPrinted(/the lease was lost/);
  },

  "a registration outlives etcd's death, and a member's": async (
    { workspace },
  ) => {
    await using cluster = await EtcdCluster.start(workspace, { members: 3 });
    await using followed = new FollowedSource(clientOf(cluster));
    await followed.synced();
    await using _child = await registerService(
      workspace,
      cluster,
      ...["web", "--endpoint=10.0.0.7:1"],
    );
    await eventually(
      "it is there",
      () => followed.endpoints("default/web").length === 1,
    );
    for (const i of [0, 1, 2]) {
      await cluster.stopMember(i, "SIGKILL");
      await new Promise((resolve) => setTimeout(resolve, 3_500));
      assertEquals(followed.endpoints("default/web"), ["10.0.0.7:1"]);
      await cluster.startMember(i);
      await cluster.ready();
    }
    for (const i of [0, 1, 2]) await cluster.stopMember(i, "SIGKILL");
    await eventually("that is seen", () => followed.problem !== undefined);
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    assertEquals(followed.endpoints("default/web"), ["10.0.0.7:1"]);
    for (const i of [0, 1, 2]) await cluster.startMember(i);
    await cluster.ready();
    await followed.synced();
    // Leases have their whole time again after an election; then one is kept.
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    assertEquals(followed.endpoints("default/web"), ["10.0.0.7:1"]);
    assertEquals((await endpointKeys(cluster, "default/web")).length, 1);
  },
};
