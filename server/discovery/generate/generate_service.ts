/**
 * All resources of one service for one audience. A pure function: what becomes
 * of a service does not depend on which others there are.
 *
 * @module
 */

import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../../../platform/errors/internal_errors.ts";
import { appProtocolOf } from "../../../catalog/model/app_protocol.ts";
import { keyOf, type ServicePort } from "../../../catalog/model/model.ts";
import { resourceNameOf } from "../../../catalog/model/resource_names.ts";
import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";
import type { ResourceMessages } from "../../../proto/xds/validation.ts";
import { assignmentOf, noEndpoints } from "./assignments.ts";
import type { Form, Variant } from "./audience.ts";
import { clusterOf, plainCluster } from "./clusters.ts";
import {
  envoyListener,
  grpcListener,
  listenPlace,
  proxyListener,
} from "./listeners.ts";
import { grpcNames } from "./grpc_names.ts";
import { InvalidResource, namesakesOf, resourceOf } from "./resource_of.ts";
import { clustersOfRoutes, routesOf, targetsOfRoutes } from "./routes.ts";
import type {
  Claim,
  ServiceInput,
  ServiceResources,
} from "./service_resources.ts";

/** Of what a service is by itself, and of what it has only if nobody else. */
const OWN = 0;
const STAND_IN = 1;

/**
 * Behind all that people have configured: whoever may announce a service of any
 * name must not get another's place with it.
 */
const ANNOUNCED = 2;

/** See the module description. */
export function generateService(
  input: ServiceInput,
  variant: Variant,
): ServiceResources {
  const service = keyOf(input.service);
  const claims: Claim[] = [];
  const reasons: string[] = [];
  for (const port of input.service.ports) {
    if (variant.form === "grpc" && port.protocol === "udp") continue;
    try {
      const made = new PortClaims(input, port, variant, claims.length);
      claims.push(...made.claims);
      if (made.leftOut !== undefined) reasons.push(made.leftOut);
    } catch (error) {
      if (!(error instanceof InvalidResource)) {
        reportInternalError("catalog", error);
        reasons.push(`${portText(port)}: not served: ${INTERNAL_ERROR}`);
        continue;
      }
      // One resource that is refused would hold up all others.
      reasons.push(
        `${portText(port)}: not served, since clients would refuse it: ` +
          `${error.message}; report this, it is a defect`,
      );
    }
  }
  return { claims, unserved: reasons.map((reason) => ({ service, reason })) };
}

/** What of a claim is not always the same. */
type ClaimRest = Omit<Claim, "service" | "resource" | "order">;

/** What one port lays claim to. */
class PortClaims {
  readonly claims: Claim[] = [];
  readonly leftOut: string | undefined;
  readonly #input: ServiceInput;
  readonly #port: ServicePort;
  readonly #form: Form;
  readonly #service: string;
  readonly #before: number;

  /**
   * @param before How many claims the service's other ports have already.
   * @throws {InvalidResource}
   */
  constructor(
    input: ServiceInput,
    port: ServicePort,
    variant: Variant,
    before: number,
  ) {
    this.#input = input;
    this.#service = keyOf(input.service);
    this.#before = before;
    this.#port = port;
    this.#form = variant.form;
    const { assignment, leftOut } = assignmentOf(input, port, variant);
    this.leftOut = leftOut && `${portText(port)}: ${leftOut}`;
    this.#claim("cluster", clusterOf(input.service, port, variant));
    this.#claim("endpoints", assignment);
    this.#claimListeners();
    const hasRoutes = variant.form === "grpc" ||
      (variant.form === "envoy" && appProtocolOf(port) !== undefined);
    if (hasRoutes) this.#claimRoutes(variant);
  }

  #claim<Kind extends ResourceKind>(
    kind: Kind,
    message: ResourceMessages[Kind],
    rest: ClaimRest = { rank: OWN },
    clusters?: readonly string[],
  ): void {
    const resource = resourceOf(kind, message, this.#form, clusters);
    this.#claimResource(resource, rest);
  }

  #claimResource(resource: Resource, rest: ClaimRest): void {
    const order = this.#before + this.claims.length;
    this.claims.push({ service: this.#service, resource, order, ...rest });
  }

  get #rank(): number {
    return this.#input.service.announced === true ? ANNOUNCED : OWN;
  }

  #claimListeners(): void {
    const { service } = this.#input;
    const port = this.#port;
    switch (this.#form) {
      case "proxy":
        // It finds places by itself, and tells of those that it cannot have.
        return this.#claim("listener", proxyListener(service, port));
      case "grpc": {
        const names = grpcNames(service, port);
        const listeners = namesakesOf(
          names.map(({ name }) => name),
          grpcListener(service, port),
          this.#form,
        );
        for (const [index, { name, rank }] of names.entries()) {
          this.#claimResource(listeners[index]!, {
            rank: rank + this.#rank,
            whenLost: `${portText(port)}: xds:///${name} is the name of`,
          });
        }
        return;
      }
      case "envoy": {
        const place = listenPlace(port);
        const name = resourceNameOf(keyOf(service), port);
        return this.#claim("listener", envoyListener(service, port), {
          // Who asks for a place gets it before those who have none to ask for.
          rank: this.#rank + (port.listen === undefined ? 1 : 0),
          address: place,
          whenLost: `${portText(port)}: nobody listens for it, give it ` +
            `another listen; ${place} is the place of`,
          // Where there are requests, routes lead to clusters.
        }, appProtocolOf(port) === undefined ? [name] : undefined);
      }
    }
  }

  #claimRoutes(variant: Variant): void {
    const { service } = this.#input;
    const port = this.#port;
    const clusters = clustersOfRoutes(service, port);
    const routes = routesOf(service, port, variant);
    this.#claim("route", routes, { rank: OWN }, clusters);
    for (const name of targetsOfRoutes(service, port)) {
      this.#claim("cluster", plainCluster(name), {
        rank: STAND_IN,
        whenHeld: `${portText(port)}: its routes lead to ${name}, and there ` +
          "is no such TCP port that this client may see; add it, or mend the " +
          "routes",
      });
      this.#claim("endpoints", noEndpoints(name), { rank: STAND_IN });
    }
  }
}

function portText({ port, protocol }: ServicePort): string {
  return protocol === "udp" ? `port ${port}/udp` : `port ${port}`;
}
