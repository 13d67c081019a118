/**
 * `tunnel proxy` with a real API server: Services and EndpointSlices that kubectl
 * writes, an API server that is restarted, and all kinds of sources at once.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { Child } from "../../tests/support/program/child.ts";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { findPeer } from "../peers/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import {
  AllSources,
  machineAddress,
  Namespace,
  PORT_RANGE,
  serviceOf,
  SERVICES,
  sliceOf,
} from "./all_sources.ts";
import { eventually, type KubeCases } from "./kube_case.ts";
import { call, Callers, NamedBackend, ProxyRun } from "./proxied_services.ts";
import { output } from "./proxy_case.ts";

/** The one by default is for people. */
const VIRTUAL_RANGE = "--virtual-range=127.101.0.0/16";

export const PROXY_KUBE_CASES: KubeCases = {
  "what kubectl writes is served, and its clients do not notice a restart of the API server":
    async (context) => {
      const { cluster, workspace } = context;
      const host = machineAddress();
      using a = new NamedBackend("a", host);
      using b = new NamedBackend("b", host);
      using c = new NamedBackend("c", host);
      const namespace = await Namespace.make(context, "proxied");
      await namespace.apply(serviceOf("web", 8080), sliceOf("web", a));
      await namespace.apply(sliceOf("web", b));
      const flags = [
        `--kubeconfig=${cluster.adminKubeconfig}`,
        "--namespace=proxied",
        "--local-addresses=virtual-ips",
        VIRTUAL_RANGE,
      ];
      await using proxy = await ProxyRun.start(workspace, ...flags);
      await proxy.uses("proxied/web", a.address, b.address);
      const place = await proxy.place("proxied/web");
      const { hostname, port } = place as Required<Deno.ConnectOptions>;
      assertMatch(hostname, /^127\.101\./);
      assertEquals(port, 8080, "it keeps its own port");

      const hosts = `${hostname} web.proxied.svc.tunnel web.proxied\n`;
      assertEquals(await proxy.says("services", "--hosts"), hosts);
      const planned = (flag: string) =>
        output(ourCommand("proxy", ...flags, flag));
      assertEquals(await planned("--print-hosts"), hosts);
      const environment = `PROXIED_WEB_SERVICE_HOST=${hostname}\n` +
        "PROXIED_WEB_SERVICE_PORT=8080\nPROXIED_WEB_SERVICE_PORT_HTTP=8080\n";
      assertEquals(await planned("--print-env"), environment);
      assertEquals(await proxy.says("services", "--env"), environment);

      await using callers = new Callers(place);
      await callers.onlyMeet("a", "b");
      await cluster.restartApiServer(async () => {
        await eventually(
          "the proxy sees it",
          async () => (await proxy.source("kubernetes")).problem !== undefined,
        );
        assertMatch(
          await proxy.says("services"),
          /^source kubernetes: Cannot /m,
        );
        await callers.onlyMeet("a", "b");
      });
      await namespace.delete("endpointslice", "web-a");
      await namespace.apply(sliceOf("web", c));
      await callers.onlyMeet("b", "c");
      await eventually(
        "it is followed again",
        async () => (await proxy.source("kubernetes")).problem === undefined,
      );
      await callers[Symbol.asyncDispose]();
      assertEquals(callers.failures, []);

      const said = JSON.parse(
        await proxy.says("endpoints", "proxied/web", "--json"),
      );
      assertEquals(
        said[0].endpoints.map(({ address }: { address: string }) => address),
        [b.address, c.address],
      );
      await namespace.delete("service", "web");
      await eventually(
        "the service is gone",
        async () => (await proxy.status()).ports.length === 0,
      );
      await assertRejects(() => call(place), Deno.errors.ConnectionRefused);
    },

  "kube-proxy 0.4's --master is served from, too": async (context) => {
    const { cluster, workspace } = context;
    const host = machineAddress();
    using a = new NamedBackend("a", host);
    using b = new NamedBackend("b", host);
    const namespace = await Namespace.make(context, "master");
    await namespace.apply(serviceOf("web", 80), sliceOf("web", a));
    // What wants nothing to be shown: nobody has had an API server like that
    // since, but this speaks for one.
    const port = freePort();
    const open = new Child({
      name: "kubectl proxy",
      command: [
        await findPeer("kubectl"),
        `--kubeconfig=${cluster.adminKubeconfig}`,
        "proxy",
        `--port=${port}`,
      ],
      logFile: workspace.path("kubectl-proxy.log"),
    });
    await open.untilReady(`http://127.0.0.1:${port}/readyz`);
    await using proxy = await ProxyRun.start(
      workspace,
      `--master=http://127.0.0.1:${port}`,
      "--namespace=master",
      PORT_RANGE,
    );
    await proxy.uses("master/web", a.address);
    const place = await proxy.place("master/web");
    assertEquals(await call(place), "a");
    await namespace.delete("endpointslice", "web-a");
    await namespace.apply(sliceOf("web", b));
    await proxy.uses("master/web", b.address);
    assertEquals(await call(place), "b");
    await open.stop();
  },

  "of several sources the first that has a service serves it": async (
    context,
  ) => {
    const { workspace } = context;
    await using etcd = await EtcdCluster.start(workspace);
    using sources = new AllSources(context, etcd);
    await sources.fill();
    await using proxy = await ProxyRun.start(workspace, ...sources.flags);
    const meets = async (...names: readonly string[]) => {
      const found: string[] = [];
      for (const service of SERVICES) {
        found.push(await call(await proxy.place(`default/${service}`)));
      }
      assertEquals(found, names);
    };
    const all = ["file", "http", "kubernetes", "etcd", "etcd-registry"];
    await eventually(
      "each is read",
      async () => (await proxy.status()).isSynced,
    );
    assertEquals((await proxy.status()).sources.map(({ name }) => name), all);
    const of = (name: string) => sources.backend(name).address;
    for (const [i, service] of SERVICES.entries()) {
      await proxy.uses(`default/${service}`, of(all[i]!));
    }
    await meets(...all);
    // A source that has it no more leaves it to the next.
    await sources.writeFile("none");
    await proxy.uses("default/s1", of("http"));
    await sources.namespace.delete("service", "s3");
    await sources.namespace.delete("endpointslice", "s3-kubernetes");
    await proxy.uses("default/s3", of("etcd"));
    await etcd.delete("/tunnel/services/default/s4");
    await etcd.delete("/tunnel/endpoints/default/s4/1");
    await proxy.uses("default/s4", of("etcd-registry"));
    await meets("http", "http", "etcd", "etcd-registry", "etcd-registry");
    // A service's endpoints may be another's, where its own has no word of any.
    await sources.namespace.apply(serviceOf("s6", 80));
    await etcd.put(
      "/tunnel/endpoints/default/s6/1",
      JSON.stringify({
        address: "127.0.0.1",
        ports: { http: sources.backend("etcd").port },
      }),
    );
    await proxy.uses("default/s6", of("etcd"));
    await sources.namespace.delete("service", "s6");
  },
};
