/**
 * From a request to the node that is meant and the address that its agent
 * dials, by yurttunnel's headers and rules:
 *
 * 1. `X-Tunnel-Proxy-Host` names the node, `X-Tunnel-Proxy-Dest` what to dial.
 * 2. Else, with an API server at hand, the pod in the path tells the node.
 * 3. Else the Host header does, by name or address.
 *
 * @module
 */

import { isIP } from "node:net";
import {
  type Authority,
  authorityText,
  isLoopbackHost,
  parseAuthority,
} from "./authority.ts";
import type { NodeLookups } from "./node_lookups.ts";
import type { RequestHead } from "./request_head.ts";
import { targetHost } from "../target_host.ts";

/** Where a request goes. */
export interface KubeletRoute {
  /** A `host` identifier of the agent, or an address that it serves. */
  readonly node: string;
  /** What the agent dials. */
  readonly address: string;
  /** Any of these the kubelet's certificate must bear; not empty. */
  readonly names: readonly string[];
}

/** What routing needs from outside. */
export interface RoutingOptions {
  /** Absent: no API server is asked. */
  readonly lookups?: Pick<NodeLookups, "nodeOfPod" | "kubeletOf">;
  /** Ports that are dialed on the node's loopback instead. */
  readonly localhostPorts: ReadonlySet<number>;
}

/** Kubelet's paths that name a pod (its `server.go`). */
const POD_PATH =
  /^\/(?:exec|attach|portForward|containerLogs)\/([0-9a-z.-]+)\/([0-9a-z.-]+)(?:\/|$)/;

/** @throws {MessageError} When that cannot be found out. */
export async function routeOf(
  request: RequestHead,
  options: RoutingOptions,
): Promise<KubeletRoute> {
  const { fields } = request;
  const named = fields.one("x-tunnel-proxy-host", 400);
  const wanted = fields.one("x-tunnel-proxy-dest", 400);
  const dest = wanted === undefined
    ? undefined
    : parseAuthority(wanted, "X-Tunnel-Proxy-Dest");
  const { node, kubelet } = named === undefined || named === ""
    ? await nodeOf(request, options)
    : { node: targetHost(named), kubelet: undefined };
  const target = dest ?? kubelet ?? parseAuthority(request.host, "Host");
  return {
    node,
    address: authorityText(dialed(target, options.localhostPorts)),
    names: namesOf(node, target),
  };
}

async function nodeOf(
  { path, host: text }: RequestHead,
  { lookups }: RoutingOptions,
): Promise<{ readonly node: string; readonly kubelet: Authority }> {
  const [, namespace, pod] = POD_PATH.exec(path) ?? [];
  if (lookups !== undefined && pod !== undefined) {
    const node = await lookups.nodeOfPod(namespace!, pod);
    return { node, kubelet: await lookups.kubeletOf(node) };
  }
  const { host, port } = parseAuthority(text, "Host");
  if (lookups === undefined || isIP(host) !== 0) {
    return { node: host, kubelet: { host, port } };
  }
  const kubelet = await lookups.kubeletOf(host);
  return { node: host, kubelet: { host: kubelet.host, port } };
}

function dialed(
  { host, port }: Authority,
  localhostPorts: ReadonlySet<number>,
): Authority {
  if (!localhostPorts.has(port)) return { host, port };
  return { host: isIP(host) === 6 ? "::1" : "127.0.0.1", port };
}

/** The node's own names: loopback addresses are everybody's. */
function namesOf(node: string, { host }: Authority): readonly string[] {
  return host === node || isLoopbackHost(host) ? [node] : [node, host];
}
