/**
 * `tunnel proxy` with a real etcd: clients that connect all the time while etcd
 * dies, forgets and comes back, `tunnel service register`, and kube-proxy 0.4's
 * keys and flags.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { CuttableLine } from "../../tests/support/peers/cuttable_line.ts";
import type { EtcdCases } from "./etcd_case.ts";
import { registerService } from "./etcd_services.ts";
import { eventually } from "./kube_case.ts";
import { ProxyRun } from "../peers/service_proxy.ts";
import { call, Callers, NamedBackend } from "./proxied_services.ts";

/** Below the ports that other peers get. */
export const PORT_RANGE = "--port-range=10000-19999";

/** An endpoint's key and value. */
function endpointPut(
  service: string,
  { name, hostname, port }: NamedBackend,
): readonly [string, string] {
  return [
    `/tunnel/endpoints/default/${service}/${name}`,
    JSON.stringify({ address: hostname, port }),
  ];
}

/** Keys as kube-proxy 0.4 had them. */
const SPECS = "/registry/services/specs";
const ENDPOINTS = "/registry/services/endpoints";

/** A service, and where it is served. */
export function spec(id: string, port: number): readonly [string, string] {
  return [
    `${SPECS}/${id}`,
    JSON.stringify({ kind: "Service", id, apiVersion: "v1beta1", port }),
  ];
}

/** All of its endpoints. */
export function endpoints(
  id: string,
  ...backends: readonly NamedBackend[]
): readonly [string, string] {
  return [
    `${ENDPOINTS}/${id}`,
    JSON.stringify({
      kind: "Endpoints",
      id,
      apiVersion: "v1beta1",
      endpoints: backends.map(({ address }) => address),
    }),
  ];
}

export const PROXY_ETCD_CASES: EtcdCases = {
  "the proxy's clients do not notice that etcd dies, forgets and comes back":
    async ({ workspace }) => {
      await using cluster = await EtcdCluster.start(workspace);
      const line = new CuttableLine(cluster.members[0]!.port);
      using a = new NamedBackend("a");
      using b = new NamedBackend("b");
      using c = new NamedBackend("c");
      await cluster.put(
        "/tunnel/services/default/web",
        '{"ports":[{"port":80}]}',
      );
      await cluster.put(...endpointPut("web", a));
      await cluster.put(...endpointPut("web", b));
      await using proxy = await ProxyRun.start(
        workspace,
        `--etcd=http://127.0.0.1:${line.port}`,
        PORT_RANGE,
      );
      await proxy.serves(1);
      await proxy.uses("default/web", a.address, b.address);
      await using callers = new Callers(await proxy.place("default/web"));
      await callers.onlyMeet("a", "b");
      const isAway = async () =>
        (await proxy.source("etcd")).problem !== undefined;
      for (const [gone, here] of [[a, c], [c, a]] as const) {
        await cluster.stopMember(0, "SIGKILL");
        await eventually("the proxy sees it", isAway);
        assertMatch(await proxy.says("services"), /^source etcd: Cannot /m);
        await callers.more(100);
        // It comes back with other keys and no past, before the proxy sees it.
        line.block("up");
        await cluster.startMember(0);
        await cluster.ready();
        await cluster.delete(endpointPut("web", gone)[0]);
        await cluster.put(...endpointPut("web", here));
        await cluster.compact();
        await callers.onlyMeet(gone.name, "b");
        line.cut();
        line.unblock("up");
        await proxy.uses("default/web", here.address, b.address);
        await callers.onlyMeet(here.name, "b");
        await eventually("it is followed", async () => !await isAway());
      }
      assertEquals(callers.failures, []);
      const { failures, driftRepaired } = await proxy.source("etcd");
      assertEquals([failures > 0, driftRepaired], [true, 0]);
      line.close();
    },

  "what registers is served, and is not chosen once its lease has ended":
    async (
      { cluster, workspace },
    ) => {
      using dies = new NamedBackend("dies");
      using ends = new NamedBackend("ends");
      await using proxy = await ProxyRun.start(
        workspace,
        `--etcd=${cluster.urls}`,
        PORT_RANGE,
      );
      const register = ({ address }: NamedBackend) =>
        registerService(
          workspace,
          cluster,
          ...["shop/leased", `--endpoint=${address}`, "--service-port=8765"],
        );
      await using first = await register(dies);
      await using second = await register(ends);
      await proxy.uses("shop/leased", dies.address, ends.address);
      const place = await proxy.place("shop/leased");
      await using callers = new Callers(place);
      await callers.onlyMeet("dies", "ends");
      await first.stop("SIGKILL");
      await callers.onlyMeet("ends");
      const { port } = place as { port: number };
      assertMatch(
        await proxy.says("services", "--env"),
        new RegExp(
          `^SHOP_LEASED_SERVICE_HOST=127.0.0.1\nSHOP_LEASED_SERVICE_PORT=${port}$`,
          "m",
        ),
      );
      assertMatch(
        await proxy.says("endpoints", "shop/leased"),
        new RegExp(
          `^shop/leased 8765/tcp, served on 127.0.0.1:${port}, round-robin\n` +
            `ENDPOINT .*\n${ends.address} +in use +direct +- `,
        ),
      );
      await callers[Symbol.asyncDispose]();
      assertEquals(callers.failures, []);
      await second.stop();
      await proxy.uses("shop/leased");
      await assertRejects(() => call(place), Deno.errors.ConnectionReset);
      assertMatch(
        await proxy.says("endpoints", "shop/leased"),
        /\nno endpoints\n$/,
      );
      await cluster.delete("/tunnel/services/shop/leased");
      await eventually(
        "it is gone",
        async () => await proxy.port("shop/leased") === undefined,
      );
    },

  "kube-proxy 0.4's flags and keys make the service proxy that it was": async (
    { workspace },
  ) => {
    await using cluster = await EtcdCluster.start(workspace);
    using a = new NamedBackend("a");
    using b = new NamedBackend("b");
    const [port, other] = [freePort(), freePort()];
    await cluster.put(...spec("old", port));
    await cluster.put(...endpoints("old", a));
    await cluster.put(`${SPECS}/default/new`, "k8s\0 protobuf");
    await using proxy = await ProxyRun.start(
      workspace,
      `--etcd_servers=${cluster.urls}`,
      "--bind_address=127.0.0.1",
      "--local-addresses=original",
    );
    await proxy.serves(1);
    const at = (port: number) => ({ hostname: "127.0.0.1", port });
    assertEquals(await call(at(port)), "a");
    assertEquals((await proxy.source("etcd-registry")).refused, 1);
    assertMatch(
      await proxy.metrics(),
      /^tunnel_catalog_source_refused_total{source="etcd-registry"} 1$/m,
    );
    await cluster.put(...endpoints("old", b));
    await proxy.uses("default/old", b.address);
    assertEquals(await call(at(port)), "b");
    // The service stays without them, and another port leaves none behind.
    await cluster.delete(`${ENDPOINTS}/old`);
    await proxy.uses("default/old");
    await assertRejects(() => call(at(port)), Deno.errors.ConnectionReset);
    await cluster.put(...endpoints("old", a, b));
    await cluster.put(...spec("old", other));
    await eventually(
      "it is at the other port",
      async () =>
        (await proxy.port("default/old"))?.listening === `127.0.0.1:${other}`,
    );
    assertEquals(
      [await call(at(other)), await call(at(other))].sort(),
      ["a", "b"],
    );
    await assertRejects(() => call(at(port)), Deno.errors.ConnectionRefused);
    await cluster.delete(`${SPECS}/old`);
    await eventually(
      "the last service is gone",
      async () => (await proxy.status()).services.length === 0,
    );
    await assertRejects(() => call(at(other)), Deno.errors.ConnectionRefused);
  },
};
