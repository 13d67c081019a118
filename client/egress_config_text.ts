/**
 * Writes kube-apiserver's `EgressSelectorConfiguration`, which
 * `egress_config.ts` reads.
 *
 * @module
 */

import { hostPort } from "../proto/peer/host_port.ts";
import { stringify } from "../std/yaml.ts";
import type { EgressRoutes } from "./egress_config.ts";
import type { FrontendAddress, TunnelRoute } from "./tunnel_route.ts";

/**
 * The configuration as YAML. Paths stand in it as they are given, so they had
 * better be absolute.
 *
 * @throws {TypeError} For gRPC over TCP and for several servers, neither of which
 *   kube-apiserver knows.
 */
export function formatEgressConfig(routes: EgressRoutes): string {
  return stringify({
    apiVersion: "apiserver.k8s.io/v1beta1",
    kind: "EgressSelectorConfiguration",
    egressSelections: [...routes].map(([name, route]) => ({
      name,
      connection: connectionOf(route),
    })),
  });
}

function connectionOf(route: TunnelRoute): object {
  if (route.kind === "direct") return { proxyProtocol: "Direct" };
  if (route.kind === "node") throw new TypeError("kube-apiserver is no node");
  const { protocol, address, others = [] } = route;
  if (others.length > 0) throw new TypeError("kube-apiserver asks one server");
  if (protocol === "grpc" && address.kind === "tcp") {
    throw new TypeError("kube-apiserver speaks gRPC over unix sockets only");
  }
  return {
    proxyProtocol: protocol === "grpc" ? "GRPC" : "HTTPConnect",
    transport: transportOf(address),
  };
}

function transportOf(address: FrontendAddress): object {
  if (address.kind === "unix") return { uds: { udsName: address.path } };
  const { host, port, tls } = address;
  const { caFile, certFile, keyFile, serverName } = tls;
  return {
    tcp: {
      url: `https://${hostPort(host, port)}`,
      tlsConfig: {
        caBundle: caFile,
        clientCert: certFile,
        clientKey: keyFile,
        ...(serverName === undefined ? {} : { tlsServerName: serverName }),
      },
    },
  };
}
