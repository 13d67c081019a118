/**
 * Rules on the way of one dial: a name is judged before anybody is asked for its
 * addresses, each address before it is dialed, and what is dialed is what was
 * judged. So a name whose addresses change between two looks gains nothing.
 *
 * @module
 */

import type { DialTarget } from "../proto/peer/dial_error.ts";
import { refusal } from "./refusal.ts";
import { NOT_ALLOWED, type RuleSet, type Verdict } from "./rule_set.ts";
import { judgedAddress, type Subject, subjectOf } from "./subject.ts";

/** Which paths unix sockets may be dialed at, whatever the rules say. */
const ALLOW_UNIX = "--allow-unix";

/** What a dial is judged by. */
export interface DialRules {
  /** Absent: tcp and udp may go anywhere. */
  readonly rules?: RuleSet;
  /** Paths that no rule need allow; a rule may deny them. */
  readonly allowUnix?: readonly string[];
  /** Told once whether the dial may be made, as soon as it is known. */
  readonly onVerdict?: (verdict: Verdict) => void;
}

/** The verdict where there are no rules. */
const WITHOUT_RULES: Verdict = { isAllowed: true, rule: "none were given" };

/** See the module description; of one dial. */
export class DialGate {
  readonly #target: DialTarget;
  readonly #options: DialRules;
  readonly #subject: Subject | undefined;
  #ofName: Verdict | undefined;

  constructor(target: DialTarget, options: DialRules) {
    this.#target = target;
    this.#options = options;
    if (options.rules !== undefined) this.#subject = subjectOf(target);
  }

  /**
   * Judges the target before it is looked up.
   *
   * @throws {DialError}
   */
  beforeLookup(): void {
    const { rules } = this.#options;
    const subject = this.#subject;
    if (rules === undefined || subject?.kind !== "endpoint") return;
    if (subject.host.kind !== "name") return;
    this.#ofName = rules.judgeName(subject);
    if (this.#ofName?.isAllowed === false) this.#refuse(this.#ofName);
  }

  /**
   * Judges the addresses that the target has.
   *
   * @returns Those that may be dialed, at least one, in the same order.
   * @throws {DialError} When none may; it names the rule against the first.
   */
  admit(addresses: readonly string[]): readonly string[] {
    const { rules } = this.#options;
    const subject = this.#subject;
    if (rules === undefined || subject === undefined) {
      this.#options.onVerdict?.(WITHOUT_RULES);
      return addresses;
    }
    const verdicts = addresses.map((text) => {
      const address = judgedAddress(text);
      return subject.kind === "endpoint" && address !== undefined
        ? rules.judgeAddress(subject, address, this.#ofName)
        : NOT_ALLOWED;
    });
    const allowed = verdicts.find(({ isAllowed }) => isAllowed);
    if (allowed === undefined) {
      const isName = subject.kind === "endpoint" &&
        subject.host.kind === "name";
      this.#refuse(verdicts[0] ?? NOT_ALLOWED, isName ? addresses[0] : "");
    }
    this.#options.onVerdict?.(allowed);
    return addresses.filter((_, index) => verdicts[index]!.isAllowed);
  }

  /**
   * Judges a unix socket: the path that was asked for, and the one that symbolic
   * links make of it, which is the one to dial.
   *
   * @param realPath Follows symbolic links.
   * @returns The path to dial.
   * @throws {DialError} And whatever `realPath` throws.
   */
  async admitPath(
    path: string,
    realPath: (path: string) => Promise<string>,
  ): Promise<string> {
    const { rules, allowUnix = [], onVerdict } = this.#options;
    const isListed = allowUnix.includes(path);
    const verdict = rules?.judgePath(path);
    const isDenied = verdict?.isAllowed === false && verdict.rule !== "";
    if (isDenied || !isListed && verdict?.isAllowed !== true) {
      this.#refuse(verdict ?? NOT_ALLOWED);
    }
    let dialed = path;
    if (rules !== undefined && !path.startsWith("@")) {
      const real = await realPath(path);
      const behind = rules.judgePath(real);
      const isClosed = !behind.isAllowed && (behind.rule !== "" || !isListed);
      if (isClosed) this.#refuse(behind, `which leads to ${real}`);
      if (!isListed) dialed = real;
    }
    onVerdict?.(
      verdict?.isAllowed ? verdict : { isAllowed: true, rule: ALLOW_UNIX },
    );
    return dialed;
  }

  /** No rule is about such a target; none allows it either. */
  refuseNetwork(): void {
    const { rules, onVerdict } = this.#options;
    if (rules !== undefined) onVerdict?.(NOT_ALLOWED);
  }

  #refuse(verdict: Verdict, via?: string): never {
    this.#options.onVerdict?.(verdict);
    const isPath = this.#target.protocol === "unix";
    throw refusal(
      "agent",
      this.#target,
      isPath && verdict.rule === "" && verdict.note === undefined
        ? { ...verdict, note: "nor does its --allow-unix" }
        : verdict,
      via === "" ? undefined : via,
    );
  }
}
