/**
 * A Kubernetes Service as the catalog has it.
 *
 * @module
 */

import type { Service as KubernetesService } from "../../host/kubernetes/objects.ts";
import {
  type Affinity,
  DEFAULT_AFFINITY_TTL_MS,
  NO_AFFINITY,
  NO_POLICY,
  type Protocol,
  type Service,
  type ServicePort,
} from "../model.ts";

/** Values that ask for endpoints of the client's own zone. */
const NEAR_FIRST: ReadonlySet<string> = new Set([
  "PreferClose",
  "PreferSameZone",
  "PreferSameNode",
]);

/** How the same was asked for before `trafficDistribution`. */
const TOPOLOGY_MODE = "service.kubernetes.io/topology-mode";

/**
 * @returns `undefined` for what kube-proxy leaves alone, too: names of other
 *   places (ExternalName), and services without an address of their own, whose
 *   clients find the endpoints by themselves.
 */
export function serviceFrom(object: KubernetesService): Service | undefined {
  const { metadata, spec = {} } = object;
  const { clusterIP = "", type } = spec;
  if (type === "ExternalName" || clusterIP === "" || clusterIP === "None") {
    return undefined;
  }
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    ports: portsOf(object),
    affinity: affinityOf(object),
    policy: isNearFirst(object) ? { zoneAware: true } : NO_POLICY,
  };
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

function isNearFirst({ metadata, spec }: KubernetesService): boolean {
  return NEAR_FIRST.has(spec?.trafficDistribution ?? "") ||
    metadata.annotations?.[TOPOLOGY_MODE]?.toLowerCase() === "auto";
}
