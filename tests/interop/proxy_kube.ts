/**
 * `tunnel proxy` with a real API server: Services and EndpointSlices that kubectl
 * writes, an API server that is restarted, and all kinds of sources at once.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { Child } from "../peers/child.ts";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { findPeer } from "../peers/peers.ts";
import { freePort } from "../peers/ports.ts";
import { ourCommand } from "../peers/tunnel.ts";
import { eventually, type KubeCases, type KubeContext } from "./kube_case.ts";
import { call, Callers, NamedBackend, ProxyRun } from "./proxied_services.ts";
import { output } from "./proxy_case.ts";

/** Below the ports that other peers get. */
const PORT_RANGE = "--port-range=10000-19999";
/** The one by default is for people. */
const VIRTUAL_RANGE = "--virtual-range=127.101.0.0/16";

/** An API server takes no endpoint on loopback. */
function machineAddress(): string {
  const found = Deno.networkInterfaces().find(({ family, address }) =>
    family === "IPv4" && !address.startsWith("127.")
  );
  if (found !== undefined) return found.address;
  throw new Error("Cannot have endpoints: this machine has only loopback");
}

function serviceOf(name: string, port: number) {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { ports: [{ name: "http", port }] },
  };
}

/** One slice for each backend: ports are of a slice. */
function sliceOf(service: string, { name, hostname, port }: NamedBackend) {
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

  async apply(...items: readonly object[]): Promise<void> {
    const list = { apiVersion: "v1", kind: "List", items };
    await this.context.cluster.kubectl(
      [`--namespace=${this.name}`, "apply", "-f", "-"],
      JSON.stringify(list),
    );
  }

  async delete(kind: string, name: string): Promise<void> {
    await this.context.cluster.kubectl(
      [`--namespace=${this.name}`, "delete", kind, name],
    );
  }
}

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

/** The first is in all sources, the last in the last alone. */
const SERVICES = ["s1", "s2", "s3", "s4", "s5"] as const;

/** One source of each kind; each has a backend that says its name. */
class AllSources implements Disposable {
  readonly namespace: Namespace;
  readonly #etcd: EtcdCluster;
  readonly #file: string;
  readonly #http: Deno.HttpServer<Deno.NetAddr>;
  readonly #backends = new Map<string, NamedBackend>();
  readonly #kubeconfig: string;

  constructor(context: KubeContext, etcd: EtcdCluster) {
    this.#kubeconfig = context.cluster.adminKubeconfig;
    this.namespace = new Namespace(context, "default");
    this.#etcd = etcd;
    this.#file = context.workspace.path("services.json");
    for (const name of ["file", "http", "etcd", "etcd-registry"]) {
      this.#backends.set(name, new NamedBackend(name));
    }
    this.#backends.set(
      "kubernetes",
      new NamedBackend("kubernetes", machineAddress()),
    );
    this.#http = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      () => Response.json(this.#document("http", SERVICES.slice(0, 2))),
    );
  }

  get flags(): readonly string[] {
    return [
      `--config=${this.#file}`,
      `--services-url=http://127.0.0.1:${this.#http.addr.port}/`,
      `--kubeconfig=${this.#kubeconfig}`,
      "--namespace=default",
      `--etcd=${this.#etcd.urls}`,
      `--etcd-servers=${this.#etcd.urls}`,
      PORT_RANGE,
    ];
  }

  backend(name: string): NamedBackend {
    return this.#backends.get(name)!;
  }

  async fill(): Promise<void> {
    await this.writeFile("s1");
    for (const service of SERVICES.slice(0, 3)) {
      await this.namespace.apply(
        serviceOf(service, 80),
        sliceOf(service, this.backend("kubernetes")),
      );
    }
    const { port } = this.backend("etcd");
    for (const service of SERVICES.slice(0, 4)) {
      await this.#etcd.put(
        `/tunnel/services/default/${service}`,
        JSON.stringify({ ports: [{ port: 80 }] }),
      );
      await this.#etcd.put(
        `/tunnel/endpoints/default/${service}/1`,
        JSON.stringify({ address: "127.0.0.1", port }),
      );
    }
    for (const id of SERVICES) {
      await this.#etcd.put(
        `/registry/services/specs/${id}`,
        JSON.stringify({ id, port: freePort() }),
      );
      await this.#etcd.put(
        `/registry/services/endpoints/${id}`,
        JSON.stringify({
          id,
          endpoints: [this.backend("etcd-registry").address],
        }),
      );
    }
  }

  /** Replaces the file by one with this service. */
  async writeFile(service: string): Promise<void> {
    const fresh = `${this.#file}.new`;
    const document = this.#document("file", [service]);
    await Deno.writeTextFile(fresh, JSON.stringify(document));
    await Deno.rename(fresh, this.#file);
  }

  [Symbol.dispose](): void {
    void this.#http.shutdown();
    for (const backend of this.#backends.values()) backend[Symbol.dispose]();
  }

  #document(source: string, services: readonly string[]) {
    const { hostname, port } = this.backend(source);
    return {
      services: services.map((name) => ({
        name,
        ports: [{ port: 80 }],
        endpoints: [{ address: hostname, port }],
      })),
    };
  }
}
