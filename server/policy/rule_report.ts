/**
 * Which rule decides about a dial, in a sentence: for `tunnel policy test`. The
 * decision is that of the very code that dials ask.
 *
 * @module
 */

import type { PolicyAnswer } from "../../proto/admin/path_check.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import { ANONYMOUS, reportedIdentity } from "../../proto/peer/peer_identity.ts";
import { positionsIn } from "../../platform/documents/yaml.ts";
import type { DocumentPath } from "../../platform/documents/field_error.ts";
import { type Caller, callerName } from "./caller.ts";
import {
  type DialAuthorizer,
  namesOf,
  type RequestedDial,
} from "./dial_authorizer.ts";
import { type Policy, UNRESTRICTED } from "./policy.ts";

/** A policy, and the file that it was read from. */
export interface PolicySource {
  readonly path: string;
  readonly text: string;
  readonly current: Policy;
}

/**
 * The caller, from words such as `alice`, `node:edge-7` or
 * `socket:/run/a.sock`.
 *
 * @param groups Organizations of the certificate.
 */
export function callerNamed(
  as: string,
  groups: readonly string[] = [],
): Caller {
  const common = { identity: ANONYMOUS, remoteAddress: "", localAddress: "" };
  const node = /^node:(.+)$/s.exec(as)?.[1];
  if (node !== undefined) return { ...common, node };
  const socket = /^socket:(.+)$/s.exec(as)?.[1];
  if (socket !== undefined) return { ...common, localAddress: socket };
  const identity = reportedIdentity({ commonName: as, organizations: groups });
  return { ...common, identity };
}

/** @param agent The agent that would be asked, if known. */
export function ruleReport(
  question: RequestedDial,
  agent: LinkPeer | undefined,
  authorizer: DialAuthorizer,
  policy: PolicySource | undefined,
): PolicyAnswer {
  const { caller, target, node } = question;
  const decision = authorizer.explain(question, agent);
  const { isAllowed, rule, note } = decision;
  const place = (at: DocumentPath | undefined) =>
    policy === undefined || at === undefined
      ? undefined
      : `${policy.path}:${positionsIn(policy.text)(at).line}`;
  const what = `${callerName(caller)} ${isAllowed ? "may" : "may not"} dial ` +
    `${target.address}${node === undefined ? "" : ` at ${node}`}`;
  const why = note === undefined ? "" : ` (${note})`;
  if (decision === UNRESTRICTED) {
    return { isAllowed, message: `${what}: no policy restricts callers` };
  }
  if (rule !== "") {
    const decided = place(policy?.current.placeOf(rule));
    const verb = isAllowed ? "allows" : "denies";
    return {
      isAllowed,
      rule,
      place: decided,
      message: `${what}: ${rule} ${verb} it${why}`,
    };
  }
  const near = policy?.current.nearest(
    caller.node ?? caller,
    namesOf(agent, node),
    target,
  );
  const nearPlace = place(near?.labelled.place);
  const nearest = near === undefined
    ? ""
    : `; the nearest is ${near.labelled.label}` +
      (nearPlace === undefined ? "" : ` (${nearPlace})`) +
      (near.misses.length === 0 ? "" : `: ${near.misses.join(", ")}`);
  return {
    isAllowed,
    message: `${what}: no rule matched${why}${nearest}`,
  };
}
