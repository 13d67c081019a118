/**
 * What gRPC clients may call a service: the names of its listeners for them. All
 * else is called by `catalog/model/resource_names.ts`.
 *
 * @module
 */

import { DEFAULT_NAMESPACE, keyOf } from "../../../catalog/model/model.ts";
import type { Service, ServicePort } from "../../../catalog/model/model.ts";
import { appProtocolOf } from "../../../catalog/model/app_protocol.ts";

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
