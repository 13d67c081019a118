/**
 * `tunnel proxy` with a real API server: Services and EndpointSlices that kubectl
 * writes, and an API server that is restarted.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { Child } from "../../tests/support/program/child.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { eventually, type KubeCases, type KubeContext } from "./kube_case.ts";
import { ProxyRun } from "../peers/service_proxy.ts";
import { call, Callers, NamedBackend } from "./proxied_services.ts";
import { mustEnd } from "../../tests/support/program/run.ts";

/** Below the ports that other peers get. */
const PORT_RANGE = "--port-range=10000-19999";

/** An API server takes no endpoint on loopback. */
function machineAddress(): string {
  const found = Deno.networkInterfaces().find(({ family, address }) =>
    family === "IPv4" && !address.startsWith("127.")
  );
  if (found !== undefined) return found.address;
  throw new Error("Cannot have endpoints: this machine has only loopback");
}

/** A Service with one port. */
function serviceOf(name: string, port: number): object {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { ports: [{ name: "http", port }] },
  };
}

/** One slice for each backend: ports are of a slice. */
function sliceOf(
  service: string,
  { name, hostname, port }: NamedBackend,
): object {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `${service}-${name}`,
      labels: { "kubernetes.io/service-name": service },
    },
    addressType: "IPv4",
    endpoints: [{ addresses: [hostname], conditions: { ready: true } }],
    ports: [{ name: "http", port }],
  };
}

/** kubectl in one namespace. */
class Namespace {
  constructor(readonly context: KubeContext, readonly name: string) {}

  static async make(context: KubeContext, name: string): Promise<Namespace> {
    await context.cluster.kubectl(["create", "namespace", name]);
    return new Namespace(context, name);
  }

  apply(...objects: readonly object[]): Promise<void> {
    return this.context.cluster.apply(objects, this.name);
  }

  async delete(kind: string, name: string): Promise<void> {
    await this.context.cluster.kubectl(
      [`--namespace=${this.name}`, "delete", kind, name],
    );
  }
}

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
        mustEnd(ourCommand("proxy", ...flags, flag));
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
        async () => (await proxy.status()).services.length === 0,
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
};
