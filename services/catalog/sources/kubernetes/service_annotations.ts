/**
 * The policy of a Kubernetes Service, out of its annotations: one for each field
 * that `policy` has in a file, with the same values. `health` and `ejection` are
 * maps there, and YAML here: `{http: {path: /healthz}, interval: 5s}`.
 *
 * Users that may write a Service write these; one that cannot be used is left out
 * alone, and the Service is served without it.
 *
 * @module
 */

import { clipped } from "../../../../proto/peer/quoted.ts";
import {
  DocumentError,
  parseYaml,
} from "../../../../platform/documents/document.ts";
import { nearest } from "../../../../platform/text/nearest.ts";
import {
  NO_POLICY,
  type Service,
  type ServicePolicy,
} from "../../model/model.ts";
import { checkService } from "../../model/validate.ts";
import { FieldError } from "../../../../platform/documents/document_map.ts";
import { as, readAll } from "../../../../platform/documents/shape.ts";
import {
  POLICY_FIELDS,
  sayUnanswered,
  SERVICE_POLICY,
} from "../document/policy_shape.ts";

/** What the names of our annotations begin with. */
export const ANNOTATION_PREFIX = "proxy.tunnel/";

/** Longest value; the longest that makes sense has a fifth of this. */
const VALUE_LENGTH_MAX = 1_024;

/** Maps, lists and texts in a value: YAML can name one list in another for ever. */
const VALUE_NODES_MAX = 128;

/** What one sentence says of one annotation. */
const PROBLEM_LENGTH_MAX = 300;

/** Those that one sentence names. */
const NAMED_MAX = 3;

/** What was wanted, and what could not be. */
export interface AnnotatedPolicy {
  readonly policy: ServicePolicy;
  /** What is left out, and why, in one clause; absent: nothing. */
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
