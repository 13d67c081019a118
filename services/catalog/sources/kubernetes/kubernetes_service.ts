/**
 * A Kubernetes Service as the catalog has it, and its policy out of its
 * annotations: one for each field that `policy` has in a file, with the same values.
 * `health` and `ejection` are maps there, and YAML here:
 * `{http: {path: /healthz}, interval: 5s}`.
 *
 * Users that may write a Service write these; one that cannot be used is left out
 * alone, and the Service is served without it.
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
import { clipped } from "../../../../proto/peer/quoted.ts";
import {
  DocumentError,
  parseYaml,
} from "../../../../platform/documents/document.ts";
import { nearest } from "../../../../platform/text/nearest.ts";
import { checkService } from "../../model/validate.ts";
import { FieldError } from "../../../../platform/documents/field_error.ts";
import { as, readAll } from "../../../../platform/documents/shape.ts";
import {
  POLICY_FIELDS,
  sayUnanswered,
  SERVICE_POLICY,
} from "../document/policy_shape.ts";

/** Values that ask for endpoints of the client's own zone. */
const NEAR_FIRST: ReadonlySet<string> = new Set([
  "PreferClose",
  "PreferSameZone",
]);

/** The value that prefers endpoints on the own node, and then in its zone. */
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
    // deno-lint-ignore tunnel/own-keys -- the key is a constant of ours.
    metadata.annotations?.[TOPOLOGY_MODE]?.toLowerCase() === "auto";
  return isNear ? { zoneAware: true } : NO_POLICY;
}

/** What the names of our annotations begin with. */
export const ANNOTATION_PREFIX = "proxy.tunnel/";

/** Longest value; the longest that makes sense has a fifth of this. */
const VALUE_LENGTH_MAX = 1_024;

/**
 * Limit on maps, lists and texts in a value: in YAML a list can contain itself.
 */
const VALUE_NODES_MAX = 128;

/** The annotation that one sentence is about. */
const PROBLEM_LENGTH_MAX = 300;

/** Those that one sentence names. */
const NAMED_MAX = 3;

/** The wanted value, and the fault. */
export interface AnnotatedPolicy {
  readonly policy: ServicePolicy;
  /** The parts that are left out, and why, in one clause; absent: none. */
  readonly problem?: string;
}

/** The annotation of each field: `proxy.tunnel/dial-timeout`. */
const FIELDS: ReadonlyMap<string, typeof POLICY_FIELDS[number]> = new Map(
  POLICY_FIELDS.map((field) => [
    ANNOTATION_PREFIX +
    field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    field,
  ]),
);

/** @param service As it is without them. */
export function annotatedPolicy(
  service: Service,
  annotations: Readonly<Record<string, string>>,
): AnnotatedPolicy {
  const problems: string[] = [];
  let policy = NO_POLICY;
  for (const [name, text] of Object.entries(annotations)) {
    if (!name.startsWith(ANNOTATION_PREFIX)) continue;
    try {
      policy = { ...policy, ...readAnnotation(service, name, text) };
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      problems.push(clipped(error.message, PROBLEM_LENGTH_MAX));
    }
  }
  if (problems.length === 0) return { policy };
  const more = problems.length > NAMED_MAX ? "; …" : "";
  const problem = problems.slice(0, NAMED_MAX).join("; ") + more;
  return { policy, problem };
}

/** @throws {FieldError} */
function readAnnotation(
  service: Service,
  name: string,
  text: string,
): ServicePolicy {
  const field = FIELDS.get(name);
  if (field === undefined) {
    const near = nearest(name, FIELDS.keys());
    throw new FieldError(
      [name],
      "there is no such annotation" +
        (near === undefined ? "" : `; did you mean ${near}?`),
    );
  }
  const { read: policy, problems: [wrong] } = readAll(
    as(SERVICE_POLICY, (policy, at) => {
      sayUnanswered(policy, service.ports, at);
      return policy;
    }),
    { [field]: readValue(name, text) },
  );
  if (wrong !== undefined) {
    throw new FieldError([name], withoutField(field, wrong.message));
  }
  const problem = checkService({ ...service, policy: policy! });
  if (problem !== undefined) throw new FieldError([name], problem);
  return policy!;
}

/** `health.interval: …` as `interval: …`: the annotation is named already. */
function withoutField(field: string, message: string): string {
  return message.startsWith(field)
    ? message.slice(field.length).replace(/^(?:: |\.)/, "")
    : message;
}

function readValue(name: string, text: string): unknown {
  const refuse = (problem: string) => {
    throw new FieldError([name], problem);
  };
  if (text.length > VALUE_LENGTH_MAX) {
    refuse(`wanted ${VALUE_LENGTH_MAX} characters at most`);
  }
  let value: unknown;
  try {
    value = parseYaml(text);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    refuse(error.message);
  }
  if (!isSmall(value)) refuse("it has too many parts");
  return value;
}

function isSmall(value: unknown): boolean {
  let left = VALUE_NODES_MAX;
  const visit = (part: unknown): boolean =>
    left-- > 0 && (typeof part !== "object" || part === null ||
      Object.values(part).every(visit));
  return visit(value);
}
