/**
 * Rules on the way of one dial: a name is evaluated before it is resolved, and
 * each address before it is dialed; only an evaluated address is dialed. So a
 * name gains nothing by changing its addresses between two lookups.
 *
 * @module
 */

import type { DialTarget } from "../proto/peer/dial_error.ts";
import { refusal } from "./refusal.ts";
import { NOT_ALLOWED, type RuleDecision, type RuleSet } from "./rule_set.ts";
import { effectiveAddress, type Subject, subjectOf } from "./subject.ts";

/** The paths at which unix sockets may be dialed, whatever the rules say. */
const ALLOW_UNIX = "--allow-unix";

/** The rules for a dial. */
export interface DialRules {
  /** Absent: tcp and udp may go anywhere. */
  readonly rules?: RuleSet | undefined;
  /** Paths that no rule need allow; a rule may deny them. */
  readonly allowUnix?: readonly string[];
  /** Called once with whether the dial is allowed, as soon as that is known. */
  readonly onDecision?: ((decision: RuleDecision) => void) | undefined;
}

/** The decision where there are no rules. */
const WITHOUT_RULES: RuleDecision = {
  isAllowed: true,
  rule: "none were given",
};

/** Decides about one dial. */
export class DialGate {
  readonly #subject: Subject | undefined;
  #ofName: RuleDecision | undefined;

  constructor(
    private readonly target: DialTarget,
    private readonly options: DialRules,
  ) {
    if (options.rules !== undefined) this.#subject = subjectOf(target);
  }

  /**
   * Evaluates the target before it is looked up.
   *
   * @throws {DialError}
   */
  beforeLookup(): void {
    const { rules } = this.options;
    const subject = this.#subject;
    if (rules === undefined || subject?.kind !== "endpoint") return;
    if (subject.host.kind !== "name") return;
    this.#ofName = rules.evaluateName(subject);
    if (this.#ofName?.isAllowed === false) this.#refuse(this.#ofName);
  }

  /**
   * Evaluates the addresses that the target has.
   *
   * @returns Those that may be dialed, at least one, in the same order.
   * @throws {DialError} When none may; it names the rule against the first.
   */
  admit(addresses: readonly string[]): readonly string[] {
    const { rules } = this.options;
    const subject = this.#subject;
    if (rules === undefined || subject === undefined) {
      this.options.onDecision?.(WITHOUT_RULES);
      return addresses;
    }
    const decisions = addresses.map((text) => {
      const address = effectiveAddress(text);
      return subject.kind === "endpoint" && address !== undefined
        ? rules.evaluateAddress(subject, address, this.#ofName)
        : NOT_ALLOWED;
    });
    const allowed = decisions.find(({ isAllowed }) => isAllowed);
    if (allowed === undefined) {
      const isName = subject.kind === "endpoint" &&
        subject.host.kind === "name";
      this.#refuse(decisions[0] ?? NOT_ALLOWED, isName ? addresses[0] : "");
    }
    this.options.onDecision?.(allowed);
    return addresses.filter((_, index) => decisions[index]!.isAllowed);
  }

  /**
   * Evaluates a unix socket: the requested path, and the path after symbolic
   * links, which is dialed.
   *
   * @param realPath Follows symbolic links.
   * @returns The path to dial.
   * @throws {DialError} Or the errors of `realPath`.
   */
  async admitPath(
    path: string,
    realPath: (path: string) => Promise<string>,
  ): Promise<string> {
    const { rules, allowUnix = [], onDecision } = this.options;
    const isListed = allowUnix.includes(path);
    const decision = rules?.evaluatePath(path);
    const isDenied = decision?.isAllowed === false && decision.rule !== "";
    if (isDenied || !isListed && decision?.isAllowed !== true) {
      this.#refuse(decision ?? NOT_ALLOWED);
    }
    let dialed = path;
    if (rules !== undefined && !path.startsWith("@")) {
      const real = await realPath(path);
      const behind = rules.evaluatePath(real);
      const isClosed = !behind.isAllowed && (behind.rule !== "" || !isListed);
      if (isClosed) this.#refuse(behind, `which leads to ${real}`);
      if (!isListed) dialed = real;
    }
    onDecision?.(
      decision?.isAllowed ? decision : { isAllowed: true, rule: ALLOW_UNIX },
    );
    return dialed;
  }

  /** No rule is about such a target; none allows it either. */
  refuseNetwork(): void {
    const { rules, onDecision } = this.options;
    if (rules !== undefined) onDecision?.(NOT_ALLOWED);
  }

  #refuse(decision: RuleDecision, via?: string): never {
    this.options.onDecision?.(decision);
    const isPath = this.target.protocol === "unix";
    throw refusal(
      "agent",
      this.target,
      isPath && decision.rule === "" && decision.note === undefined
        ? { ...decision, note: "nor does its --allow-unix" }
        : decision,
      via === "" ? undefined : via,
    );
  }
}
