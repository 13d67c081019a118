/**
 * Evaluates a target by a list of rules. Pure; it does not use DNS.
 *
 * A matching deny rule refuses, whatever else matches; otherwise a matching
 * allow rule allows; a target without a matching rule is refused.
 *
 * A name is evaluated twice: as a name, and then each address that it has. An
 * allow rule about names (or `*`) allows the name whatever its addresses are,
 * unless a deny rule matches one of them; otherwise each address needs an allow
 * rule of its own. So a rule about names trusts the DNS of that name, and a
 * rule about addresses does not trust DNS.
 *
 * Paths of unix sockets are evaluated as they are written. Where symbolic links
 * lead is known on the machine that dials, which evaluates that as well;
 * elsewhere it is with paths beside deny rules as it is with names beside rules
 * about addresses.
 *
 * @module
 */

import type { DocumentPath } from "../platform/documents/field_error.ts";
import { type IpAddress, prefixContains } from "../proto/peer/ip_address.ts";
import { clipped } from "../proto/peer/quoted.ts";
import { ROUNDABOUT, type Rule } from "./rule.ts";
import type { Subject } from "./subject.ts";
import type { Wildcard } from "./wildcard.ts";

/** A rule, and what to call it when it decides. */
export interface LabelledRule {
  readonly rule: Rule;
  /** Its origin and its text, such as `--deny tcp:*:25`. */
  readonly label: string;
  /** Its place in a document. */
  readonly place?: DocumentPath;
}

/** Whether something is allowed, and by which rule. */
export interface RuleDecision {
  readonly isAllowed: boolean;
  /** Empty: refused because nothing allows it. */
  readonly rule: string;
  /** An explanation, where the rule alone is none. */
  readonly note?: string;
}

/** Refused, because no rule allows it. */
export const NOT_ALLOWED: RuleDecision = { isAllowed: false, rule: "" };

/** A rule about tcp or udp. */
type EndpointRule = Extract<Rule, { readonly kind: "endpoint" }>;

/** A target of tcp or udp. */
type EndpointSubject = Extract<Subject, { readonly kind: "endpoint" }>;

/** Rules that allow and rules that deny, evaluated together. */
export class RuleSet {
  constructor(
    private readonly lists: {
      readonly allow: readonly LabelledRule[];
      readonly deny: readonly LabelledRule[];
    },
  ) {}

  /**
   * Evaluates a name before it is resolved.
   *
   * @returns `undefined` when its addresses decide.
   */
  evaluateName(endpoint: EndpointSubject): RuleDecision | undefined {
    const fits = ({ rule }: LabelledRule) => fitsName(rule, endpoint);
    const decision = this.#evaluate(fits);
    if (decision !== NOT_ALLOWED) return decision;
    // Names that could not be allowed are not looked up: their DNS server would
    // learn the caller, and any data hidden in the name.
    const mayStill = this.lists.allow.some(({ rule }) =>
      isAboutAddresses(rule, endpoint)
    );
    return mayStill ? undefined : NOT_ALLOWED;
  }

  /**
   * Evaluates one address of an endpoint.
   *
   * @param before What `evaluateName` returned, when the endpoint is a name.
   */
  evaluateAddress(
    endpoint: EndpointSubject,
    address: IpAddress,
    before?: RuleDecision,
  ): RuleDecision {
    const fits = ({ rule }: LabelledRule) =>
      fitsAddress(rule, endpoint, address);
    const denied = this.lists.deny.find(fits);
    if (denied !== undefined) return { isAllowed: false, rule: denied.label };
    return before ?? this.#evaluate(fits);
  }

  /** Evaluates a unix socket by its path as written. */
  evaluatePath(path: string): RuleDecision {
    // Else a pattern could be made to fit another path than the kernel's.
    const isPlain = path.startsWith("/")
      ? !ROUNDABOUT.test(path)
      : /^@./s.test(path);
    if (!isPlain) {
      const note = 'a path must begin with "/" and be without ".", "..", "//"';
      return { ...NOT_ALLOWED, note };
    }
    return this.#evaluate(({ rule }) =>
      rule.kind === "path" && rule.pattern.matches(path)
    );
  }

  /**
   * Evaluates a target whose name another machine will resolve.
   *
   * Where a deny rule is about addresses it is not known whether it fits a name:
   * such a name is allowed only by a rule about names. Where one is about paths
   * it is not known whether another path leads there: it is allowed only by a rule
   * that says in which folder it is.
   */
  evaluateUnresolved(subject: Subject): RuleDecision {
    switch (subject.kind) {
      case "unreadable":
        return { ...NOT_ALLOWED, note: subject.problem };
      case "path":
        return this.#evaluateUnresolvedPath(subject.path);
      case "endpoint":
        return this.#evaluateUnresolvedEndpoint(subject);
    }
  }

  #evaluateUnresolvedPath(path: string): RuleDecision {
    const decision = this.evaluatePath(path);
    // Abstract names are in no folder: nothing leads to them.
    if (!decision.isAllowed || path.startsWith("@")) return decision;
    const alias = aliasOf(path);
    const other = alias === undefined ? undefined : this.evaluatePath(alias);
    const isDenied = other?.isAllowed === false && other.rule !== "";
    if (isDenied) return { ...other, note: `which may be ${alias}` };
    const unsure = this.lists.deny.find(({ rule }) => rule.kind === "path");
    const isNamed = this.lists.allow.some(({ rule }) =>
      rule.kind === "path" && rule.pattern.matches(path) &&
      (rule.pattern.isExact || !MAGIC.test(path) && namesFolder(rule.pattern))
    );
    if (unsure === undefined || isNamed) return decision;
    const note = "links on the node may lead from this path to one of its; " +
      "allow the path, or its folder as unix:/FOLDER/*";
    return { isAllowed: false, rule: unsure.label, note };
  }

  #evaluateUnresolvedEndpoint(endpoint: EndpointSubject): RuleDecision {
    const { host } = endpoint;
    if (host.kind === "addresses") {
      const decisions = host.addresses.map((one) =>
        this.evaluateAddress(endpoint, one)
      );
      return decisions.find((one) => !one.isAllowed) ?? decisions[0]!;
    }
    const fits = ({ rule }: LabelledRule) => fitsName(rule, endpoint);
    const decision = this.#evaluate(fits);
    if (!decision.isAllowed) {
      return decision === NOT_ALLOWED &&
          this.evaluateName(endpoint) === undefined
        ? { ...NOT_ALLOWED, note: "rules about addresses allow no names here" }
        : decision;
    }
    const unsure = this.lists.deny.find(({ rule }) =>
      isAboutAddresses(rule, endpoint)
    );
    const isNamed = this.lists.allow.some((one) =>
      fits(one) && one.rule.kind === "endpoint" && one.rule.host.kind === "name"
    );
    if (unsure === undefined || isNamed) return decision;
    const note = "it may be an address of this name: dial the address, or " +
      "allow the name by name";
    return { isAllowed: false, rule: unsure.label, note };
  }

  #evaluate(fits: (rule: LabelledRule) => boolean): RuleDecision {
    const denied = this.lists.deny.find(fits);
    if (denied !== undefined) return { isAllowed: false, rule: denied.label };
    const allowed = this.lists.allow.find(fits);
    return allowed === undefined
      ? NOT_ALLOWED
      : { isAllowed: true, rule: allowed.label };
  }
}

/**
 * Roots of a process's own view of files: such a path may be any other path.
 */
const MAGIC = /^\/(?:proc|dev\/fd)(?:\/|$)/;

function namesFolder({ head }: Wildcard): boolean {
  return head.lastIndexOf("/") > 0;
}

/** Nearly everywhere one of the two is a link to the other (FHS 3.0 §5.13). */
function aliasOf(path: string): string | undefined {
  if (path.startsWith("/var/run/")) return path.slice("/var".length);
  return path.startsWith("/run/") ? `/var${path}` : undefined;
}

function fitsName(rule: Rule, endpoint: EndpointSubject): boolean {
  return rule.kind === "endpoint" && fitsRest(rule, endpoint) &&
    fitsHostName(rule, endpoint);
}

/** Whether the host of `rule` matches the target's requested host. */
function fitsHostName(
  rule: EndpointRule,
  endpoint: EndpointSubject,
): boolean {
  switch (rule.host.kind) {
    case "any":
      return true;
    case "prefix":
      return false;
    case "name":
      return endpoint.host.kind === "name" && endpoint.host.name !== "" &&
        rule.host.pattern.matches(endpoint.host.name);
  }
}

function fitsAddress(
  rule: Rule,
  endpoint: EndpointSubject,
  address: IpAddress,
): boolean {
  return rule.kind === "endpoint" && fitsRest(rule, endpoint) &&
    fitsHostAddress(rule, address);
}

/** Whether the host of `rule` is one of a target's addresses. */
function fitsHostAddress(
  rule: EndpointRule,
  address: IpAddress,
): boolean {
  switch (rule.host.kind) {
    case "any":
      return true;
    case "prefix":
      return prefixContains(rule.host.prefix, address);
    case "name":
      return false;
  }
}

/** Whether `rule` would fit `endpoint` if it had the right address. */
function isAboutAddresses(rule: Rule, endpoint: EndpointSubject): boolean {
  return rule.kind === "endpoint" && rule.host.kind === "prefix" &&
    fitsRest(rule, endpoint);
}

function fitsRest(rule: EndpointRule, endpoint: EndpointSubject): boolean {
  return fitsProtocol(rule, endpoint) && fitsPort(rule, endpoint);
}

/** Whether `rule` is about the target's protocol. */
function fitsProtocol(
  rule: EndpointRule,
  { protocol }: EndpointSubject,
): boolean {
  return rule.protocol === "*" || rule.protocol === protocol;
}

/** Whether `rule` is about the target's port. */
function fitsPort(
  rule: EndpointRule,
  { port }: EndpointSubject,
): boolean {
  return rule.ports.some(({ first, last }) => first <= port && port <= last);
}

// The rule that nearly allows a target, for people who wonder why none does.

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
