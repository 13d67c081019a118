/**
 * All resources of one service for one group of clients. A pure function: the
 * resources of a service do not depend on other services.
 *
 * @module
 */

import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../../../platform/errors/internal_errors.ts";
import {
  appProtocolOf,
  DIRECT,
  keyOf,
  NO_AFFINITY,
  NO_POLICY,
  resourceNameOf,
  type Service,
  type ServicePort,
} from "../../catalog/model/model.ts";
import { messageOf } from "../../catalog/service_message.ts";
import { assignmentOf, noEndpoints } from "./assignments.ts";
import { type Form, FORMS, type Variant } from "./client_group.ts";
import { clusterOf, plainCluster } from "./clusters.ts";
import {
  envoyListener,
  grpcListener,
  grpcNames,
  listenPlace,
} from "./listeners.ts";
import {
  type Claim,
  type Generate,
  namesakesOf,
  resourceOf,
  type ServiceInput,
  type ServiceResources,
} from "./service_resources.ts";
import { clustersOfRoutes, routesOf, targetsOfRoutes } from "./routes.ts";

/** Ranks of a service's own resources, and of those that replace another's. */
const OWN = 0;
const STAND_IN = 1;

/**
 * Behind everything that people configure: a node that may announce a service of
 * any name must not take another service's place with it.
 */
const ANNOUNCED = 2;

/** See the module description. */
export function generateService(
  input: ServiceInput,
  variant: Variant,
): ServiceResources {
  const service = keyOf(input.service);
  if (variant.form === "service") {
    const resource = resourceOf("service", messageOf(input));
    const claim = { service, resource, rank: OWN, order: 0 };
    return { claims: [claim], unserved: [] };
  }
  const claims: Claim[] = [];
  const reasons: string[] = [];
  for (const port of input.service.ports) {
    if (variant.form === "grpc" && port.protocol === "udp") continue;
    try {
      const { made, omitted } = claimsOfPort(input, port, variant);
      for (const one of made) {
        claims.push({ service, order: claims.length, ...one });
      }
      if (omitted !== undefined) reasons.push(omitted);
    } catch (error) {
      // One that cannot be made holds up no other.
      reportInternalError("catalog", error);
      reasons.push(`${portText(port)}: not served: ${INTERNAL_ERROR}`);
    }
  }
  return { claims, unserved: reasons.map((reason) => ({ service, reason })) };
}

/** A claim of a port; which service has it, and its place, is the service's. */
type PortClaim = Omit<Claim, "service" | "order">;

function claimsOfPort(
  input: ServiceInput,
  port: ServicePort,
  variant: Variant,
): { readonly made: readonly PortClaim[]; readonly omitted?: string } {
  const { service } = input;
  const { form } = variant;
  const cluster = clusterOf(service, port, variant);
  const { assignment, omitted } = assignmentOf(input, port, variant);
  const hasRoutes = form === "grpc" || appProtocolOf(port) !== undefined;
  const made = [
    { resource: resourceOf("cluster", cluster), rank: OWN },
    { resource: resourceOf("endpoints", assignment), rank: OWN },
    ...listenersOf(service, port, form),
    ...hasRoutes ? routeClaims(service, port, variant) : [],
  ];
  return { made, ...omitted && { omitted: `${portText(port)}: ${omitted}` } };
}

function listenersOf(
  service: Service,
  port: ServicePort,
  form: Form,
): readonly PortClaim[] {
  const least = service.announced === true ? ANNOUNCED : OWN;
  if (form === "grpc") {
    const names = grpcNames(service, port);
    const listeners = namesakesOf(
      names.map(({ name }) => name),
      grpcListener(service, port),
    );
    return names.map(({ name, rank }, index) => ({
      resource: listeners[index]!,
      rank: rank + least,
      whenLost: `${portText(port)}: xds:///${name} is the name of`,
    }));
  }
  const place = listenPlace(port);
  // Ports with HTTP requests have routes, which lead to clusters.
  const clusters = appProtocolOf(port) === undefined
    ? [resourceNameOf(keyOf(service), port)]
    : undefined;
  return [{
    resource: resourceOf(
      "listener",
      envoyListener(service, port),
      clusters,
    ),
    // A port with a configured address gets it before ports without one.
    rank: least + (port.listen === undefined ? 1 : 0),
    address: place,
    whenLost: `${portText(port)}: no port listens for it, give it ` +
      `another listen; ${place} is the place of`,
  }];
}

function routeClaims(
  service: Service,
  port: ServicePort,
  variant: Variant,
): readonly PortClaim[] {
  const clusters = clustersOfRoutes(service, port);
  const routes = routesOf(service, port, variant);
  return [
    { resource: resourceOf("route", routes, clusters), rank: OWN },
    ...targetsOfRoutes(service, port).flatMap((name) => [{
      resource: resourceOf("cluster", plainCluster(name)),
      rank: STAND_IN,
      whenHeld: `${portText(port)}: its routes lead to ${name}, and there ` +
        "is no such TCP port that this client may see; add it, or mend the " +
        "routes",
    }, {
      resource: resourceOf("endpoints", noEndpoints(name)),
      rank: STAND_IN,
    }]),
  ];
}

function portText({ port, protocol }: ServicePort): string {
  return protocol === "udp" ? `port ${port}/udp` : `port ${port}`;
}

/** One port of each kind that is generated differently. */
const SAMPLE: ServiceInput = {
  service: {
    namespace: "precompile",
    name: "sample",
    ports: [
      { name: "tcp", port: 1, protocol: "tcp" },
      { name: "http", port: 2, protocol: "tcp", appProtocol: "http" },
      { name: "udp", port: 3, protocol: "udp" },
    ],
    affinity: NO_AFFINITY,
    policy: NO_POLICY,
  },
  endpoints: [{
    address: "192.0.2.1",
    ports: ["tcp", "http", "udp"].map((name) => ({ name, port: 1 })),
    state: "ready",
    weight: 1,
    via: DIRECT,
  }],
};

/**
 * Compiles the codecs of all forms before the first client asks. They compile at
 * first use, which takes a tenth of a second that the first client, and after a
 * restart all clients, would wait for.
 */
export function precompile(generate: Generate): void {
  for (const form of FORMS) generate(SAMPLE, { form });
}
