/**
 * Services and endpoints out of the message in which discovery sends them to a
 * node proxy (`proto/xds/service.proto`), and into it: its fields and words are
 * those of the model.
 *
 * Unknown fields are ignored, and a health check of an unknown kind is none: a
 * server may be newer than its proxies. Other unknown words are refused.
 *
 * @module
 */

import { clipped } from "../../proto/peer/quoted.ts";
import type {
  TunnelService,
  TunnelService_Endpoint,
  TunnelService_HealthCheck,
  TunnelService_Policy,
  TunnelService_Port,
} from "../../proto/xds/xds_messages.ts";
import {
  AGENT_KEYS,
  BALANCES,
  DIRECT,
  type Endpoint,
  ENDPOINT_ENDS,
  type HealthCheck,
  keyOf,
  NO_AFFINITY,
  type Service,
  type ServicePolicy,
  type ServicePort,
  type Via,
} from "./model/model.ts";
import { given } from "../../platform/documents/given.ts";
import { checkEndpoints, checkService } from "./model/validate.ts";

/** What no catalog may hold; the rest of a sentence. */
export class ServiceMessageError extends Error {
  override readonly name = "ServiceMessageError";
}

/** A service, and where it is. */
export interface WholeService {
  readonly service: Service;
  readonly endpoints: readonly Endpoint[];
}

/** @throws {ServiceMessageError} */
export function wholeServiceOf(message: TunnelService): WholeService {
  const { name = "", affinity, policy = {} } = message;
  const service: Service = {
    ...namedBy(name),
    ports: (message.ports ?? []).map(portOf),
    affinity: word("affinity", affinity?.kind ?? "none", AFFINITIES) === "none"
      ? NO_AFFINITY
      : { kind: "client-ip", ttlMs: affinity?.ttlMs ?? 0 },
    policy: policyOf(policy),
    ...message.announced === true ? { announced: true } : {},
  };
  const endpoints = (message.endpoints ?? []).map(endpointOf);
  const problem = checkService(service) ??
    checkEndpoints({ service: keyOf(service), endpoints });
  if (problem !== undefined) throw new ServiceMessageError(problem);
  return { service, endpoints };
}

/** As the message has it; {@linkcode wholeServiceOf} undoes it. */
export function messageOf({ service, endpoints }: WholeService): TunnelService {
  return { ...service, name: keyOf(service), endpoints };
}

/** Names are checked with the rest. */
function namedBy(key: string): Pick<Service, "namespace" | "name"> {
  const at = key.indexOf("/");
  return { namespace: key.slice(0, Math.max(0, at)), name: key.slice(at + 1) };
}

const AFFINITIES = ["none", "client-ip"] as const;
const PROTOCOLS = ["tcp", "udp"] as const;
const STATES = ["ready", "serving", "terminating", "unready"] as const;
const VIAS = ["direct", "agent"] as const;

function portOf(
  { name = "", port = 0, protocol, listen, ...rest }: TunnelService_Port,
): ServicePort {
  const routes = rest.routes?.map((
    { host, prefix = "", headers, to = [] },
  ) => ({
    ...given({
      host,
      headers: headers?.map(({ name = "", value = "" }) => ({ name, value })),
    }),
    prefix,
    to: to.map(({ service = "", port = 0, weight = 0 }) => ({
      ...{ service, port, weight },
    })),
  }));
  return {
    ...{ name, port, protocol: word("protocol", protocol, PROTOCOLS) },
    ...given({
      appProtocol: rest.appProtocol,
      routes,
      listen: listen && {
        ...given({ host: listen.host }),
        port: listen.port ?? 0,
      },
    }),
  };
}

function policyOf(
  { balance, onEndpointRemoved, onEndpointDown, health, ...rest }:
    TunnelService_Policy,
): ServicePolicy {
  return given({
    ...rest,
    balance: balance === undefined
      ? undefined
      : word("balance", balance, BALANCES),
    onEndpointRemoved: endOf("onEndpointRemoved", onEndpointRemoved),
    onEndpointDown: endOf("onEndpointDown", onEndpointDown),
    health: health && healthOf(health),
  }) as ServicePolicy;
}

function endOf(field: string, seen: string | undefined) {
  return seen === undefined ? undefined : word(field, seen, ENDPOINT_ENDS);
}

function healthOf(
  { kind, path = "", service = "", statuses, ...rest }:
    TunnelService_HealthCheck,
): HealthCheck | undefined {
  const { host, tls, intervalMs = 0, timeoutMs = 0, ...more } = rest;
  const times = { ...more, intervalMs, timeoutMs } as const;
  const asked = given({ host, tls });
  switch (kind) {
    case "tcp":
      return { kind, ...times } as HealthCheck;
    case "grpc":
      return { kind, service, ...asked, ...times } as HealthCheck;
    case "http": {
      const ranges = statuses
        ?.map(({ first = 0, last = 0 }) => ({ first, last }));
      const wanted = given({ statuses: ranges });
      return { kind, path, ...wanted, ...asked, ...times } as HealthCheck;
    }
  }
  return undefined;
}

function endpointOf(
  { address = "", ports = [], state, weight = 0, via, ...rest }:
    TunnelService_Endpoint,
): Endpoint {
  const { node, zone, forZones } = rest;
  return {
    address,
    ports: ports.map(({ name = "", port = 0 }) => ({ name, port })),
    state: word("state", state, STATES),
    ...given({ node, zone, forZones }),
    weight,
    via: viaOf(via),
  };
}

function viaOf(via: TunnelService_Endpoint["via"]): Via {
  if (word("via", via?.kind, VIAS) === "direct") return DIRECT;
  const { agent } = via!;
  if (agent === undefined) return { kind: "agent" };
  const { key, value = "" } = agent;
  return {
    kind: "agent",
    agent: { key: word("via.agent.key", key, AGENT_KEYS), value },
  };
}

function word<Word extends string>(
  field: string,
  seen: string | undefined,
  words: readonly Word[],
): Word {
  const found = words.find((each) => each === seen);
  if (found !== undefined) return found;
  throw new ServiceMessageError(
    `${field}: saw "${clipped(seen ?? "")}", wanted ${words.join(", ")}`,
  );
}
