/**
 * A source of services of each kind, all at once; and what is written into an API
 * server for them.
 *
 * @module
 */

import type { EtcdCluster } from "../peers/etcd_cluster.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import type { KubeContext } from "./kube_case.ts";
import { NamedBackend } from "./proxied_services.ts";

/** Below the ports that other peers get. */
export const PORT_RANGE = "--port-range=10000-19999";

/** An API server takes no endpoint on loopback. */
export function machineAddress(): string {
  const found = Deno.networkInterfaces().find(({ family, address }) =>
    family === "IPv4" && !address.startsWith("127.")
  );
  if (found !== undefined) return found.address;
  throw new Error("Cannot have endpoints: this machine has only loopback");
}

/** A Service with one port. */
export function serviceOf(name: string, port: number): object {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { ports: [{ name: "http", port }] },
  };
}

/** One slice for each backend: ports are of a slice. */
export function sliceOf(
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
export class Namespace {
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

/** The first is in all sources, the last in the last alone. */
export const SERVICES = ["s1", "s2", "s3", "s4", "s5"] as const;

/** One source of each kind; each has a backend that says its name. */
export class AllSources implements Disposable {
  readonly namespace: Namespace;
  readonly #file: string;
  readonly #http: Deno.HttpServer<Deno.NetAddr>;
  readonly #backends = new Map<string, NamedBackend>();
  readonly #kubeconfig: string;

  constructor(context: KubeContext, private readonly etcd: EtcdCluster) {
    this.#kubeconfig = context.cluster.adminKubeconfig;
    this.namespace = new Namespace(context, "default");
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
      `--etcd=${this.etcd.urls}`,
      `--etcd-servers=${this.etcd.urls}`,
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
      await this.etcd.put(
        `/tunnel/services/default/${service}`,
        JSON.stringify({ ports: [{ port: 80 }] }),
      );
      await this.etcd.put(
        `/tunnel/endpoints/default/${service}/1`,
        JSON.stringify({ address: "127.0.0.1", port }),
      );
    }
    for (const id of SERVICES) {
      await this.etcd.put(
        `/registry/services/specs/${id}`,
        JSON.stringify({ id, port: freePort() }),
      );
      await this.etcd.put(
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
