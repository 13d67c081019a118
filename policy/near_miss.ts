/**
 * The rule that nearly allows a target, for people who wonder why none does.
 * What fits is for `rule_set.ts` to say; here it is only asked part by part.
 *
 * @module
 */

import { clipped } from "../proto/peer/quoted.ts";
import type { Rule } from "./rule.ts";
import {
  type EndpointRule,
  type EndpointSubject,
  fitsHostAddress,
  fitsHostName,
  fitsPort,
  fitsProtocol,
  type LabelledRule,
} from "./rule_set.ts";
import type { Subject } from "./subject.ts";

/** A rule, and what of it does not fit: at least one thing. */
export interface NearMiss {
  readonly labelled: LabelledRule;
  /** Clauses such as `it is about udp`. */
  readonly misses: readonly string[];
}

/** What of a rule does not fit a target; nothing, if all does. */
export function missesOf(rule: Rule, subject: Subject): string[] {
  if (subject.kind === "unreadable") return [subject.problem];
  if (rule.kind === "path") {
    if (subject.kind !== "path") return ["it is about unix sockets"];
    return rule.pattern.matches(subject.path)
      ? []
      : [`${clipped(subject.path)} is another path`];
  }
  if (subject.kind === "path") return ["it is about ports, not unix sockets"];
  return [
    fitsProtocol(rule, subject) ? [] : [`it is about ${rule.protocol}`],
    hostMisses(rule, subject),
    fitsPort(rule, subject) ? [] : [`port ${subject.port} is not in it`],
  ].flat();
}

function hostMisses(rule: EndpointRule, subject: EndpointSubject): string[] {
  const { host } = subject;
  if (host.kind === "addresses") {
    const isFitting = host.addresses.every((one) => fitsHostAddress(rule, one));
    if (isFitting) return [];
    return [
      rule.host.kind === "name"
        ? "it is about a name, and an address was asked for"
        : "the address is not in it",
    ];
  }
  if (fitsHostName(rule, subject)) return [];
  return [
    rule.host.kind === "prefix"
      ? "it is about addresses, and a name was asked for"
      : "the name does not match it",
  ];
}
