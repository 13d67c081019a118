/**
 * What services are called in resources. Everybody relies on these names:
 * clients ask by them, status and logs show them.
 *
 * @module
 */

import { DEFAULT_NAMESPACE, keyOf } from "../../../catalog/model.ts";
import type { Service, ServicePort } from "../../../catalog/model.ts";
import { appProtocolOf } from "../../../catalog/app_protocol.ts";

/**
 * The name of one port's cluster, load assignment, route configuration, and of
 * its listener for a node proxy: `namespace/name:PORT`, for UDP
 * `namespace/name:PORT/udp`.
 */
export function portName(
  service: Pick<Service, "namespace" | "name">,
  { port, protocol }: Pick<ServicePort, "port" | "protocol">,
): string {
  const suffix = protocol === "udp" ? "/udp" : "";
  return `${keyOf(service)}:${port}${suffix}`;
}

/** A name by which gRPC clients ask (`xds:///NAME`). */
export interface GrpcName {
  readonly name: string;
  /** Of two services that one name could mean it is the one with the lower. */
  readonly rank: number;
}

/**
 * All names of one TCP port for gRPC clients: `namespace/name`,
 * `name.namespace`, and in the default namespace `name`; each also with `:PORT`.
 *
 * Names of services have dots, so `a.b` is the service `a.b` of the default
 * namespace before it is `a` of the namespace `b`.
 */
export function grpcNames(
  service: Service,
  port: ServicePort,
): readonly GrpcName[] {
  const { namespace, name } = service;
  const forms: readonly GrpcName[] = [
    { name: keyOf(service), rank: 0 },
    ...namespace === DEFAULT_NAMESPACE ? [{ name, rank: 0 }] : [],
    { name: `${name}.${namespace}`, rank: 1 },
  ];
  const suffixes = port === defaultGrpcPort(service)
    ? ["", `:${port.port}`]
    : [`:${port.port}`];
  return forms.flatMap(({ name, rank }) =>
    suffixes.map((suffix) => ({ name: `${name}${suffix}`, rank }))
  );
}

/** The port of a name without one: the first for gRPC, or the first of TCP. */
function defaultGrpcPort({ ports }: Service): ServicePort | undefined {
  const tcp = ports.filter(({ protocol }) => protocol === "tcp");
  return tcp.find((port) => appProtocolOf(port) === "grpc") ?? tcp[0];
}
