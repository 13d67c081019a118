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
  type ServicePort,
} from "../../catalog/model/model.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import type {
  ResourceMessages,
  XdsKind,
} from "../../../proto/xds/validation.ts";
import { assignmentOf, noEndpoints } from "./assignments.ts";
import { type Form, FORMS, type Variant } from "./client_group.ts";
import { clusterOf, plainCluster } from "./clusters.ts";
import {
  envoyListener,
  grpcListener,
  grpcNames,
  listenPlace,
  proxyListener,
} from "./listeners.ts";
import { proxyAssignment, proxyCluster } from "./older_proxies.ts";
import {
  type Claim,
  type Generate,
  InvalidResource,
  namesakesOf,
  resourceOf,
  type ServiceInput,
  serviceResource,
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
    const resource = serviceResource(input);
    const claim = { service, resource, rank: OWN, order: 0 };
    return { claims: [claim], unserved: [] };
  }
  const claims: Claim[] = [];
  const reasons: string[] = [];
  for (const port of input.service.ports) {
    if (variant.form === "grpc" && port.protocol === "udp") continue;
    try {
      const made = new PortClaims(input, port, variant, claims.length);
      claims.push(...made.claims);
      if (made.omitted !== undefined) reasons.push(made.omitted);
    } catch (error) {
      if (!(error instanceof InvalidResource)) {
        reportInternalError("catalog", error);
        reasons.push(`${portText(port)}: not served: ${INTERNAL_ERROR}`);
        continue;
      }
      // One resource that a client refuses would hold up all others.
      reasons.push(
        `${portText(port)}: not served, since clients would refuse it: ` +
          `${error.message}; report this, it is a defect`,
      );
    }
  }
  return { claims, unserved: reasons.map((reason) => ({ service, reason })) };
}

/** The parts of a claim that differ. */
type ClaimRest = Omit<Claim, "service" | "resource" | "order">;

/** The claims of one port. */
class PortClaims {
  readonly claims: Claim[] = [];
  readonly omitted: string | undefined;
  readonly #form: Form;
  readonly #service: string;

  /**
   * @param before How many claims the service's other ports have already.
   * @throws {InvalidResource}
   */
  constructor(
    private readonly input: ServiceInput,
    private readonly port: ServicePort,
    variant: Variant,
    private readonly before: number,
  ) {
    this.#service = keyOf(input.service);
    this.#form = variant.form;
    const { assignment, omitted = undefined } = this.#form === "proxy"
      ? { assignment: proxyAssignment(input, port) }
      : assignmentOf(input, port, variant);
    this.omitted = omitted && `${portText(port)}: ${omitted}`;
    this.#claim(
      "cluster",
      this.#form === "proxy"
        ? proxyCluster(input.service, port)
        : clusterOf(input.service, port, variant),
    );
    this.#claim("endpoints", assignment);
    this.#claimListeners();
    const hasRoutes = variant.form === "grpc" ||
      (variant.form === "envoy" && appProtocolOf(port) !== undefined);
    if (hasRoutes) this.#claimRoutes(variant);
  }

  #claim<Kind extends XdsKind>(
    kind: Kind,
    message: ResourceMessages[Kind],
    rest: ClaimRest = { rank: OWN },
    clusters?: readonly string[],
  ): void {
    const resource = resourceOf(kind, message, this.#form, clusters);
    this.#claimResource(resource, rest);
  }

  #claimResource(resource: Resource, rest: ClaimRest): void {
    const order = this.before + this.claims.length;
    this.claims.push({ service: this.#service, resource, order, ...rest });
  }

  get #rank(): number {
    return this.input.service.announced === true ? ANNOUNCED : OWN;
  }

  #claimListeners(): void {
    const { service } = this.input;
    const port = this.port;
    switch (this.#form) {
      case "proxy":
        // A node proxy finds addresses itself, and reports those that it cannot have.
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
          // A port with a configured address gets it before ports without one.
          rank: this.#rank + (port.listen === undefined ? 1 : 0),
          address: place,
          whenLost: `${portText(port)}: no port listens for it, give it ` +
            `another listen; ${place} is the place of`,
          // Ports with HTTP requests have routes, which lead to clusters.
        }, appProtocolOf(port) === undefined ? [name] : undefined);
      }
    }
  }

  #claimRoutes(variant: Variant): void {
    const { service } = this.input;
    const port = this.port;
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
