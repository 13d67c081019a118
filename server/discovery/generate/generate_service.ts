/**
 * All resources of one service for one audience. A pure function: what becomes
 * of a service does not depend on which others there are.
 *
 * @module
 */

import { appProtocolOf } from "../../../catalog/app_protocol.ts";
import { keyOf, type ServicePort } from "../../../catalog/model.ts";
import type { Variant } from "./audience.ts";
import { assignmentOf, noEndpoints } from "./assignments.ts";
import { clusterOf, plainCluster } from "./clusters.ts";
import {
  envoyListener,
  grpcListener,
  listenPlace,
  proxyListener,
} from "./listeners.ts";
import { grpcNames, portName } from "./names.ts";
import { resourceOf } from "./resource_of.ts";
import { routesOf, targetsOfRoutes } from "./routes.ts";
import type {
  Claim,
  ServiceInput,
  ServiceResources,
} from "./service_resources.ts";

/** Of what a service is by itself, and of what it has only if nobody else. */
const OWN = 0;
const STAND_IN = 1;

/** See the module description. */
export function generateService(
  input: ServiceInput,
  variant: Variant,
): ServiceResources {
  const key = keyOf(input.service);
  const claims: Claim[] = [];
  const reasons: string[] = [];
  for (const port of input.service.ports) {
    if (variant.form === "grpc" && port.protocol === "udp") continue;
    const { assignment, leftOut } = assignmentOf(input, port, variant);
    if (leftOut !== undefined) reasons.push(`${portText(port)}: ${leftOut}`);
    claims.push(
      {
        resource: resourceOf(
          "cluster",
          clusterOf(input.service, port, variant),
        ),
        rank: OWN,
        service: key,
      },
      {
        resource: resourceOf("endpoints", assignment),
        rank: OWN,
        service: key,
      },
      ...listenersOf(input, port, variant),
      ...routeClaims(input, port, variant),
    );
  }
  return {
    claims,
    unserved: reasons.map((reason) => ({ service: key, reason })),
  };
}

function listenersOf(
  { service }: ServiceInput,
  port: ServicePort,
  { form }: Variant,
): readonly Claim[] {
  if (form === "proxy") {
    // It finds places by itself, and tells of those that it cannot have.
    const listener = proxyListener(service, port);
    return [{
      service: keyOf(service),
      resource: resourceOf("listener", listener),
      rank: OWN,
    }];
  }
  if (form === "grpc") {
    const routeConfig = portName(service, port);
    return grpcNames(service, port).map(({ name, rank }) => ({
      service: keyOf(service),
      resource: resourceOf("listener", grpcListener(name, routeConfig)),
      rank,
      whenLost: `${portText(port)}: xds:///${name} is the name of`,
    }));
  }
  const place = listenPlace(port);
  return [{
    service: keyOf(service),
    resource: resourceOf("listener", envoyListener(service, port)),
    // Who asks for a place gets it before those who have none to ask for.
    rank: port.listen === undefined ? 1 : 0,
    address: place,
    whenLost: `${portText(port)}: nobody listens for it, give it another ` +
      `listen; ${place} is the place of`,
  }];
}

function routeClaims(
  { service }: ServiceInput,
  port: ServicePort,
  variant: Variant,
): readonly Claim[] {
  const { form } = variant;
  const hasRoutes = form === "grpc" ||
    (form === "envoy" && appProtocolOf(port) !== undefined);
  if (!hasRoutes) return [];
  const key = keyOf(service);
  const routes = routesOf(service, port, variant);
  const standIns = targetsOfRoutes(service, port).flatMap((name): Claim[] => [
    {
      service: key,
      resource: resourceOf("cluster", plainCluster(name)),
      rank: STAND_IN,
      whenHeld: `${portText(port)}: its routes lead to ${name}, and there is ` +
        "no such TCP port that this client may see; add it, or mend the routes",
    },
    {
      service: key,
      resource: resourceOf("endpoints", noEndpoints(name)),
      rank: STAND_IN,
    },
  ]);
  return [
    { service: key, resource: resourceOf("route", routes), rank: OWN },
    ...standIns,
  ];
}

function portText({ port, protocol }: ServicePort): string {
  return protocol === "udp" ? `port ${port}/udp` : `port ${port}`;
}
