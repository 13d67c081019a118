/**
 * The catalog's Kubernetes source against a real API server: Services and
 * EndpointSlices that kubectl writes.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { Catalog } from "../../services/catalog/catalog.ts";
import { targetsOf, usableTargets } from "../../services/catalog/snapshot.ts";
import { KubernetesSource } from "../../services/catalog/sources/kubernetes/kubernetes.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import {
  clientOf,
  eventually,
  type KubeCases,
  type KubeContext,
} from "./kube_case.ts";

/** A catalog of one namespace of the cluster. */
class CatalogRig implements AsyncDisposable {
  readonly log = new RecordedLog();
  readonly source: KubernetesSource;
  readonly catalog: Catalog;

  private constructor(
    private readonly context: KubeContext,
    readonly namespace: string,
  ) {
    this.source = new KubernetesSource({
      client: clientOf(context),
      namespace,
      timers: systemTimers,
      random: Math.random,
    });
    this.catalog = new Catalog({
      sources: [this.source],
      log: this.log,
      timers: systemTimers,
      random: Math.random,
    });
  }

  static async open(context: KubeContext, namespace: string) {
    await context.cluster.kubectl(["create", "namespace", namespace]);
    const rig = new CatalogRig(context, namespace);
    rig.catalog.start();
    await rig.catalog.whenSynced();
    return rig;
  }

  async kubectl(...args: readonly string[]): Promise<void> {
    await this.context.cluster.kubectl([
      `--namespace=${this.namespace}`,
      ...args,
    ]);
  }

  apply(...objects: readonly object[]): Promise<void> {
    return this.context.cluster.apply(objects, this.namespace);
  }

  /** Services that are known, by name. */
  get names(): string {
    return [...this.catalog.snapshot.services.values()]
      .map(({ name }) => name).sort().join();
  }

  /** Where new connections to a service's port may go. */
  usable(service: string, port = "http"): string {
    const key = `${this.namespace}/${service}`;
    return usableTargets(targetsOf(this.catalog.snapshot, key, port))
      .map((target) => `${target.address}:${target.port}`).join();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.catalog.stop();
  }
}

const SERVICE = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web" },
  spec: {
    ports: [
      { name: "http", port: 80, targetPort: 8080 },
      { name: "dns", port: 53, protocol: "UDP" },
    ],
    sessionAffinity: "ClientIP",
  },
};

/** @param addresses Such as `10.1.0.1`, or with a word: `10.1.0.1 serving`. */
function slice(name: string, ...addresses: readonly string[]) {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name,
      labels: { "kubernetes.io/service-name": "web" },
    },
    addressType: "IPv4",
    endpoints: addresses.map((text) => {
      const [address, state] = text.split(" ");
      const isAway = state === "serving";
      return {
        addresses: [address],
        conditions: { ready: !isAway, serving: true, terminating: isAway },
        zone: "a",
      };
    }),
    ports: [{ name: "http", port: 8080 }, {
      name: "dns",
      port: 5353,
      protocol: "UDP",
    }],
  };
}

export const KUBE_CATALOG_CASES: KubeCases = {
  "the catalog follows a Service and its slices as kubectl writes them": async (
    context,
  ) => {
    await using rig = await CatalogRig.open(context, "catalog-follow");
    await rig.apply(SERVICE, slice("web-1", "10.1.0.1", "10.1.0.2"));
    await eventually(
      "two endpoints",
      () => rig.usable("web") === "10.1.0.1:8080,10.1.0.2:8080",
    );
    assertEquals(rig.usable("web", "dns"), "10.1.0.1:5353,10.1.0.2:5353");
    const service = rig.catalog.snapshot.services.get("catalog-follow/web");
    assertEquals(
      service?.ports.map(({ port, protocol }) => `${port}/${protocol}`),
      ["80/tcp", "53/udp"],
    );
    assertEquals(service?.affinity, { kind: "client-ip", ttlMs: 10_800_000 });

    await rig.apply(slice("web-2", "10.1.0.2", "10.1.0.3"));
    await eventually(
      "each endpoint once",
      () => rig.usable("web") === "10.1.0.1:8080,10.1.0.2:8080,10.1.0.3:8080",
    );
    await rig.apply(slice("web-1", "10.1.0.1 serving"));
    await eventually(
      "scaled down, without the one that goes away",
      () => rig.usable("web") === "10.1.0.2:8080,10.1.0.3:8080",
    );
    await rig.kubectl("delete", "endpointslice", "web-2");
    await eventually(
      "better one that goes away than none",
      () => rig.usable("web") === "10.1.0.1:8080",
    );
    await rig.kubectl("delete", "endpointslice", "web-1");
    await eventually("no endpoints", () => rig.usable("web") === "");
    assertEquals(rig.names, "web");
    await rig.kubectl("delete", "service", "web");
    await eventually("no service", () => rig.names === "");
  },

  "the catalog leaves alone what kube-proxy does": async (context) => {
    await using rig = await CatalogRig.open(context, "catalog-alone");
    const named = (name: string, spec: object, labels = {}) => ({
      ...SERVICE,
      metadata: { name, labels },
      spec,
    });
    const ports = [{ port: 80 }];
    const label = "service.kubernetes.io/service-proxy-name";
    await rig.apply(
      named("headless", { clusterIP: "None", ports }),
      named("elsewhere", { type: "ExternalName", externalName: "db.example" }),
      named("others", { ports }, { [label]: "other" }),
      named("last", { ports }),
    );
    await eventually("the last", () => rig.names.includes("last"));
    assertEquals(rig.names, "last");
    await rig.kubectl("label", "service", "others", `${label}-`);
    await eventually("one more", () => rig.names === "last,others");
    await rig.kubectl("label", "service", "last", `${label}=other`);
    await eventually("one less", () => rig.names === "others");
  },
};
