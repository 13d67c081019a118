/**
 * The addresses of servers, from the Service before them.
 *
 * The first source with an answer counts: an administrator's annotation, the
 * load balancer, the nodes of a NodePort, and, inside the cluster, the
 * Service's own address. (yurttunnel's agents take the first IP address of all,
 * usually the Service's own, and forget the annotation's port.)
 *
 * @module
 */

import type {
  KubernetesNode,
  KubernetesService,
} from "../../../neighbours/kubernetes/objects.ts";
import type { ServerAddress } from "../../../net/dial/server_addresses.ts";

/** Holds `host:port`, or several of them with commas. */
export const ADDRESS_ANNOTATION = "x-tunnel-server-external-addr";

/** More of them say nothing more: behind each are the same servers. */
export const SERVICE_ADDRESSES_MAX = 32;

/** Facts about the cluster. */
export interface ServiceView {
  /** For the port in question. */
  readonly portName: string;
  readonly service: KubernetesService;
  /** For a NodePort Service; a text says why there are none. */
  readonly nodes: readonly KubernetesNode[] | string;
  /** Whether the Service's own address can be reached from here. */
  readonly isInside: boolean;
}

/** The result. */
export interface Found {
  /** None: nothing was found. */
  readonly addresses: readonly ServerAddress[];
  /** The sources that were tried, and why they failed; parts of a sentence. */
  readonly looked: readonly string[];
}

export function findAddresses(view: ServiceView): Found {
  const looked: string[] = [];
  for (const source of [annotated, balanced, onNodes, inside]) {
    const found = source(view);
    if (typeof found !== "string") {
      return {
        addresses: distinct(found).slice(0, SERVICE_ADDRESSES_MAX),
        looked,
      };
    }
    looked.push(found);
  }
  return { addresses: [], looked };
}

/** Addresses, or why there are none. */
type Source = readonly ServerAddress[] | string;

// --- The four sources -------------------------------------------------------------

function annotated({ service, portName }: ServiceView): Source {
  const text = service.metadata.annotations?.[ADDRESS_ANNOTATION] ?? "";
  if (text.trim() === "") return `it has no annotation ${ADDRESS_ANNOTATION}`;
  const port = portOf(service, portName)?.port;
  const addresses: ServerAddress[] = [];
  for (const part of text.split(",")) {
    const address = parseAddress(part.trim(), port);
    if (address === undefined) {
      return `its annotation ${ADDRESS_ANNOTATION} is "${text}", wanted ` +
        "HOST:PORT";
    }
    addresses.push(address);
  }
  return addresses;
}

function balanced({ service, portName }: ServiceView): Source {
  if (service.spec?.type !== "LoadBalancer") {
    return `it is of type ${service.spec?.type ?? "ClusterIP"}, not ` +
      "LoadBalancer";
  }
  const port = portOf(service, portName)?.port;
  if (port === undefined) return noPort(service, portName);
  const ingress = service.status?.loadBalancer?.ingress ?? [];
  // An address needs no resolver, so it comes before a name of the same thing.
  const hosts = ingress.flatMap(({ ip, hostname }) => ip || hostname || []);
  if (hosts.length === 0) return "its load balancer has no address yet";
  return hosts.map((host) => ({ host, port }));
}

function onNodes({ service, portName, nodes }: ServiceView): Source {
  if (service.spec?.type !== "NodePort") return "it is not of type NodePort";
  const named = portOf(service, portName);
  if (named === undefined) return noPort(service, portName);
  const port = named.nodePort;
  if (port === undefined) return `its port "${portName}" has no nodePort yet`;
  if (typeof nodes === "string") return nodes;
  const sorted = nodes.toSorted((a, b) =>
    Number(isReady(b)) - Number(isReady(a))
  );
  const hosts = (["ExternalIP", "InternalIP"] as const).flatMap((wanted) =>
    sorted.flatMap(({ status }) =>
      (status?.addresses ?? []).flatMap(({ type, address }) =>
        type === wanted ? address : []
      )
    )
  );
  if (hosts.length === 0) return "none of its nodes has an address";
  return hosts.map((host) => ({ host, port }));
}

function inside({ service, portName, isInside }: ServiceView): Source {
  if (!isInside) return "its own address is for use inside the cluster only";
  const port = portOf(service, portName)?.port;
  if (port === undefined) return noPort(service, portName);
  const { clusterIP = "", clusterIPs = [clusterIP] } = service.spec ?? {};
  const hosts = clusterIPs.filter((ip) => ip !== "" && ip !== "None");
  if (hosts.length === 0) return "it has no address of its own";
  return hosts.map((host) => ({ host, port }));
}

// --- Parts --------------------------------------------------------------------------

type ServicePort = NonNullable<
  NonNullable<KubernetesService["spec"]>["ports"]
>[number];

function portOf(
  { spec }: KubernetesService,
  wanted: string,
): ServicePort | undefined {
  return spec?.ports?.find(({ name }) => name === wanted);
}

function noPort({ spec }: KubernetesService, wanted: string): string {
  const names = (spec?.ports ?? []).map(({ name, port }) => name ?? `${port}`);
  return `it has no port named "${wanted}", only ${names.join(", ") || "none"}`;
}

const ADDRESS = /^(?:\[([^\]\s]+)\]|([^[\]:\s/]+))(?::(\d{1,5}))?$/;

/** @param fallback The port of an address that names none. */
function parseAddress(
  text: string,
  fallback: number | undefined,
): ServerAddress | undefined {
  const [, bracketed, plain, digits] = ADDRESS.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = digits === undefined ? fallback : Number(digits);
  const isGood = host !== undefined && port !== undefined && port >= 1 &&
    port <= 65_535;
  return isGood ? { host, port } : undefined;
}

function isReady({ status }: KubernetesNode): boolean {
  return status?.conditions?.some(({ type, status }) =>
    type === "Ready" && status === "True"
  ) === true;
}

function distinct(addresses: readonly ServerAddress[]): ServerAddress[] {
  const byText = new Map<string, ServerAddress>();
  for (const address of addresses) {
    byText.set(`${address.host} ${address.port}`, address);
  }
  return [...byText.values()];
}
