/**
 * Turns the offers of agents into a service of the catalog and its endpoints.
 * Pure.
 *
 * @module
 */

import {
  DEFAULT_WEIGHT,
  type Endpoint,
  type EndpointState,
  NO_AFFINITY,
  NO_POLICY,
  type Service,
  type ServicePort,
  type Via,
} from "../../../services/catalog/model/model.ts";
import type { OfferedName } from "./announcement.ts";

/** An agent that offers something. */
export interface OfferingMember {
  /** The agent's. */
  readonly id: string;
  readonly offers: readonly OfferedName[];
  readonly state: EndpointState;
}

/**
 * The service that `members` offer together: all ports that any of them has.
 *
 * @param key `namespace/name`.
 * @param members Sorted; of different application protocols of one port the first
 *   counts.
 */
export function serviceFrom(
  key: string,
  members: readonly OfferingMember[],
): Service {
  const ports = new Map<string, Omit<ServicePort, "name">>();
  for (const { port, protocol, appProtocol } of offersOf(key, members)) {
    const id = portId({ port, protocol });
    if (ports.get(id)?.appProtocol !== undefined) continue;
    ports.set(id, {
      port,
      protocol,
      ...appProtocol === "" ? {} : { appProtocol },
    });
  }
  const sorted = [...ports.values()].sort((one, other) =>
    one.port - other.port || (one.protocol < other.protocol ? -1 : 1)
  );
  const [namespace = "", name = ""] = key.split("/");
  return {
    namespace,
    name,
    ports: sorted.map((port) => ({
      name: sorted.length === 1 ? "" : portId(port),
      ...port,
    })),
    affinity: NO_AFFINITY,
    policy: NO_POLICY,
    announced: true,
  };
}

/**
 * The places that serve `service`: each offer is an endpoint behind its agent.
 */
export function endpointsFrom(
  service: Service,
  members: readonly OfferingMember[],
): readonly Endpoint[] {
  const { namespace, name, ports } = service;
  const key = `${namespace}/${name}`;
  const nameOf = new Map(ports.map((port) => [portId(port), port.name]));
  return members.flatMap(({ id, offers, state }) => {
    const via: Via = { kind: "agent", agent: { key: "id", value: id } };
    return offers
      .filter((offer) => offer.service === key)
      .map((offer): Endpoint => ({
        address: offer.address,
        ports: [{ name: nameOf.get(portId(offer))!, port: offer.targetPort }],
        state,
        node: id,
        weight: DEFAULT_WEIGHT,
        via,
      }));
  });
}

function offersOf(
  key: string,
  members: readonly OfferingMember[],
): readonly OfferedName[] {
  return members.flatMap(({ offers }) =>
    offers.filter(({ service }) => service === key)
  );
}

/** `tcp-80`: a port's name where a service has several. */
function portId(
  { port, protocol }: Pick<ServicePort, "port" | "protocol">,
): string {
  return `${protocol}-${port}`;
}
