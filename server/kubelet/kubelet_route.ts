/**
 * Finds the node of a request and the address that its agent dials, by
 * yurttunnel's headers and rules:
 *
 * 1. `X-Tunnel-Proxy-Host` names the node, `X-Tunnel-Proxy-Dest` what to dial.
 * 2. Else, with an API server at hand, the pod in the path tells the node.
 * 3. Else the Host header does, by name or address.
 * 4. Where the Host names no node that is here, the name by which the caller
 *    greeted us in TLS may, or the address it came to: SPDY and requests to a
 *    node's proxy, which kube-apiserver passes on as they came, have the Host
 *    by which kubectl called kube-apiserver.
 *
 * @module
 */

import { isIP } from "node:net";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import type { KubeletRequest } from "./kubelet_request.ts";
import { targetHost } from "../strategies/strategy.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { MessageError, quote } from "../../net/http1/refusal.ts";
import type { RequestOptions } from "../../neighbours/kubernetes/client.ts";
import {
  codeOf,
  isKubernetesTrouble,
} from "../../neighbours/kubernetes/errors.ts";
import type {
  KubernetesNode,
  Pod,
} from "../../neighbours/kubernetes/objects.ts";
import { NODES, PODS } from "../../neighbours/kubernetes/paths.ts";
import { RememberedObjects } from "../../neighbours/kubernetes/remembered_objects.ts";
import type { Clock } from "../../proto/sync/clock.ts";

/** The destination of a request. */
export interface KubeletRoute {
  /** A `host` identifier of the agent, or an address that it serves. */
  readonly node: string;
  /** What the agent dials. */
  readonly address: string;
  /** Any of these the kubelet's certificate must bear; not empty. */
  readonly names: readonly string[];
}

/** How the caller came to us. */
export interface CallerArrival {
  /** From SNI; empty when the client sent none, as with addresses. */
  readonly serverName: string;
  /** `ip:port`; the port is the one it takes for the kubelet's. */
  readonly localAddress: string;
}

/** What routing needs from outside. */
export interface RoutingOptions {
  /** Whether an agent serves this very name or address now. */
  isServed(host: string): boolean;
  /** Absent: no API server is asked. */
  readonly lookups?: Pick<NodeLookups, "nodeOfPod" | "kubeletOf"> | undefined;
  /** Ports that are dialed on the node's loopback instead. */
  readonly localhostPorts: ReadonlySet<number>;
}

/** Kubelet's paths that name a pod (its `server.go`). */
const POD_PATH =
  /^\/(?:exec|attach|portForward|containerLogs)\/([0-9a-z.-]+)\/([0-9a-z.-]+)(?:\/|$)/;

/** @throws {MessageError} When that cannot be found out. */
export async function kubeletRouteOf(
  request: KubeletRequest,
  arrival: CallerArrival,
  options: RoutingOptions,
): Promise<KubeletRoute> {
  const { fields } = request;
  const named = fields.one("x-tunnel-proxy-host");
  const wanted = fields.one("x-tunnel-proxy-dest");
  const dest = wanted === undefined
    ? undefined
    : parseAuthority(wanted, "X-Tunnel-Proxy-Dest");
  const { node, kubelet } = named === undefined || named === ""
    ? await nodeOf(request, arrival, options)
    : { node: targetHost(named), kubelet: undefined };
  const meant = dest ?? kubelet ?? parseAuthority(request.host, "Host");
  return {
    node,
    address: dialedAddress(meant, options.localhostPorts),
    names: namesOf(node, meant),
  };
}

async function nodeOf(
  request: KubeletRequest,
  arrival: CallerArrival,
  { lookups, isServed }: RoutingOptions,
): Promise<{ readonly node: string; readonly kubelet: HttpAuthority }> {
  const [, namespace, pod] = POD_PATH.exec(request.path) ?? [];
  if (lookups !== undefined && pod !== undefined) {
    const node = await lookups.nodeOfPod(namespace!, pod);
    return { node, kubelet: await lookups.kubeletOf(node) };
  }
  const { host, port } = meantBy(request, arrival, isServed);
  if (lookups === undefined || isIP(host) !== 0) {
    return { node: host, kubelet: { host, port } };
  }
  const kubelet = await lookups.kubeletOf(host);
  return { node: host, kubelet: { host: kubelet.host, port } };
}

/**
 * Host, SNI, or the address that the caller came to. A caller's own Host that
 * names a node counts, whatever its SNI says. But kube-apiserver passes SPDY
 * on, with a Host that may even be that of another node.
 */
function meantBy(
  { host: text, upgrade }: KubeletRequest,
  { serverName, localAddress }: CallerArrival,
  isServed: RoutingOptions["isServed"],
): HttpAuthority {
  const said = parseAuthority(text, "Host");
  const isPassedOn = upgrade?.toLowerCase().startsWith("spdy/") === true;
  if (!isPassedOn && isServed(said.host)) return said;
  const isNamed = serverName !== "" && isServed(serverName);
  // The path of a unix socket is not a node's address.
  if (!isNamed && !/:\d+$/.test(localAddress)) return said;
  const came = parseAuthority(localAddress, "Host");
  if (isNamed) return { host: serverName, port: came.port };
  // A name in TLS or a kubelet's port in the Host names the node, and
  // kube-apiserver's own Host has neither. A node that is not here must not be
  // mistaken for the node of this machine.
  const isSaid = serverName !== "" || said.port === came.port ||
    said.port === KUBELET_PORT;
  return !isSaid && isServed(came.host) ? came : said;
}

function dialedAddress(
  { host, port }: HttpAuthority,
  localhostPorts: ReadonlySet<number>,
): string {
  if (!localhostPorts.has(port)) return hostPort(host, port);
  return hostPort(isIP(host) === 6 ? "::1" : "127.0.0.1", port);
}

/** The node's own names: loopback addresses are everybody's. */
function namesOf(node: string, { host }: HttpAuthority): readonly string[] {
  return host === node || isLoopbackHost(host) ? [node] : [node, host];
}

// `host:port`, as a Host header and its like write it.

/** A host without brackets, and a port in 1–65535. */
export interface HttpAuthority {
  readonly host: string;
  readonly port: number;
}

const AUTHORITY = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9A-Za-z._-]+)):([0-9]{1,5})$/;

/**
 * Reads `text`.
 *
 * @param header Where it stood, for the error.
 * @throws {MessageError}
 */
export function parseAuthority(text: string, header: string): HttpAuthority {
  const match = AUTHORITY.exec(text);
  const port = Number(match?.[3] ?? 0);
  const host = match?.[1] ?? match?.[2] ?? "";
  if (
    port < 1 || port > 65_535 || (match?.[1] !== undefined && isIP(host) !== 6)
  ) {
    throw new MessageError(
      400,
      `Cannot use the header ${header}: saw ${quote(text)}, wanted ` +
        "host:port, IPv6 in brackets",
    );
  }
  return { host, port };
}

/**
 * How long an answer is cached. A pod that is created again under its old name
 * may be on another node.
 */
export const LOOKUP_BELIEVED_MS = 5_000;

/** Answers kept; beyond it all are forgotten. */
export const ANSWERS_MAX = 10_000;

/** A person waits for this. */
const TIMEOUT_MS = 5_000;

/** The port of kubelets unless their Node states another. */
export const KUBELET_PORT = 10_250;

/** The used part of `KubernetesClient`. */
export interface LookupClient extends Disposable {
  get<T>(path: string, options: RequestOptions): Promise<T>;
}

/**
 * Which node a pod is on, and where that node's kubelet is, according to the
 * API server. The API server is asked for each request that needs it; nothing
 * is watched.
 */
export class NodeLookups implements Disposable {
  readonly #objects: RememberedObjects;

  constructor(private readonly client: LookupClient, clock: Clock) {
    this.#objects = new RememberedObjects({
      client,
      clock,
      most: ANSWERS_MAX,
      timeoutMs: TIMEOUT_MS,
      believedMs: LOOKUP_BELIEVED_MS,
      believesMissing: false,
    });
  }

  /**
   * @throws {MessageError} When there is no such pod, or the API server cannot
   *   be asked.
   */
  async nodeOfPod(namespace: string, name: string): Promise<string> {
    const pod = await answered(
      this.#objects.get<Pod>(PODS, { namespace, name }),
    );
    const node = pod.spec?.nodeName ?? "";
    if (node !== "") return node;
    throw new MessageError(
      400,
      `Cannot reach the pod ${namespace}/${name}: it is on no node yet`,
    );
  }

  /**
   * @throws {MessageError} When there is no such node, or the API server cannot
   *   be asked.
   */
  async kubeletOf(name: string): Promise<HttpAuthority> {
    const { status } = await answered(
      this.#objects.get<KubernetesNode>(NODES, { name }),
    );
    const address = status?.addresses
      ?.find(({ type }) => type === "InternalIP")?.address;
    const port = status?.daemonEndpoints?.kubeletEndpoint?.Port;
    // A node without an address is still known by its name.
    return { host: address ?? name, port: port || KUBELET_PORT };
  }

  [Symbol.dispose](): void {
    this.client[Symbol.dispose]();
  }
}

async function answered<T>(asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    if (!isKubernetesTrouble(error)) throw error;
    throw new MessageError(codeOf(error) === 404 ? 404 : 503, error.message);
  }
}
