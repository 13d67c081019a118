/**
 * A Kubernetes Service as the catalog has it.
 *
 * @module
 */

import type { KubernetesService } from "../../../../neighbours/kubernetes/objects.ts";
import {
  type Affinity,
  DEFAULT_AFFINITY_TTL_MS,
  NO_AFFINITY,
  NO_POLICY,
  type Protocol,
  type Service,
  type ServicePolicy,
  type ServicePort,
} from "../../model/model.ts";
import { annotatedPolicy } from "./service_annotations.ts";

/** Values that ask for endpoints of the client's own zone. */
const NEAR_FIRST: ReadonlySet<string> = new Set([
  "PreferClose",
  "PreferSameZone",
]);

/** The one that asks for those of its own node, and then of its zone. */
const NODE_FIRST = "PreferSameNode";

/** How the same was asked for before `trafficDistribution`. */
const TOPOLOGY_MODE = "service.kubernetes.io/topology-mode";

/**
 * @returns `undefined` for what kube-proxy leaves alone, too: names of other
 *   places (ExternalName), and services without an address of their own, whose
 *   clients find the endpoints by themselves.
 */
export function serviceOfObject(
  object: KubernetesService,
): Service | undefined {
  const { metadata, spec = {} } = object;
  const { clusterIP = "", type } = spec;
  if (type === "ExternalName" || clusterIP === "" || clusterIP === "None") {
    return undefined;
  }
  const service = {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    ports: portsOf(object),
    affinity: affinityOf(object),
    policy: nearnessOf(object),
  };
  const { annotations } = metadata;
  if (annotations === undefined) return service;
  const { policy } = annotatedPolicy(service, annotations);
  return policy === NO_POLICY
    ? service
    : { ...service, policy: { ...service.policy, ...policy } };
}

/** @returns Which annotations are left out, and why; `undefined`: none. */
export function annotationProblemOf(
  object: KubernetesService,
): string | undefined {
  const { namespace = "", name = "", annotations } = object.metadata;
  const service = serviceOfObject({ ...object, metadata: { namespace, name } });
  if (service === undefined || annotations === undefined) return undefined;
  const { problem } = annotatedPolicy(service, annotations);
  return problem === undefined
    ? undefined
    : `Service ${namespace}/${name} is served without an annotation: ${problem}`;
}

/** @returns `undefined` for SCTP. */
export function protocolFrom(text = "TCP"): Protocol | undefined {
  switch (text) {
    case "TCP":
      return "tcp";
    case "UDP":
      return "udp";
    default:
      return undefined;
  }
}

function portsOf({ spec }: KubernetesService): readonly ServicePort[] {
  return (spec?.ports ?? []).flatMap(
    ({ name = "", port, protocol: text, appProtocol }) => {
      const protocol = protocolFrom(text);
      if (protocol === undefined) return [];
      const hint = appProtocol === undefined ? {} : { appProtocol };
      return [{ name, port, protocol, ...hint }];
    },
  );
}

function affinityOf({ spec }: KubernetesService): Affinity {
  if (spec?.sessionAffinity !== "ClientIP") return NO_AFFINITY;
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
  const ttlMs = seconds === undefined
    ? DEFAULT_AFFINITY_TTL_MS
    : seconds * 1_000;
  return { kind: "client-ip", ttlMs };
}

function nearnessOf({ metadata, spec }: KubernetesService): ServicePolicy {
  const distribution = spec?.trafficDistribution ?? "";
  if (distribution === NODE_FIRST) return { zoneAware: true, nodeAware: true };
  const isNear = NEAR_FIRST.has(distribution) ||
    metadata.annotations?.[TOPOLOGY_MODE]?.toLowerCase() === "auto";
  return isNear ? { zoneAware: true } : NO_POLICY;
}
