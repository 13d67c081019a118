/**
 * The policy file of one server, and the deciders that use it.
 *
 * @module
 */

import type { PolicyAnswer } from "../../proto/admin/path_check.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import { ruleReport } from "./rule_report.ts";
import type { Code } from "../../proto/codes/codes.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { AuditTrail } from "../../policy/audit_trail.ts";
import type { ReloadSource } from "../../platform/reload/reloads.ts";
import { counted } from "../metrics/metric_families.ts";
import { DialAuthorizer, type RequestedDial } from "./dial_authorizer.ts";
import type { AuthorizationOptions } from "../options.ts";
import { parseFile, problemIn } from "../../platform/documents/document.ts";
import { FileError, systemProblem } from "../../platform/files/file_error.ts";
import { NO_RULES, Policy } from "./policy.ts";

/** The permissions of a server's policy. */
export class Authorization {
  /** Authorizes every dial. */
  readonly dials: DialAuthorizer;
  readonly #file: PolicyFile | undefined;

  /** @param trail Absent: nothing is recorded. @throws {PolicyError} */
  constructor(
    { policyFile }: AuthorizationOptions,
    metrics: MetricRegistry,
    trail: AuditTrail | undefined,
  ) {
    this.#file = policyFile === undefined
      ? undefined
      : new PolicyFile(policyFile);
    this.dials = new DialAuthorizer({
      policy: this.#file,
      trail,
      refused: counted(
        metrics,
        "refused_dials",
        "Dials that the policy forbade, before any agent was asked.",
      ),
    });
  }

  /** As it is now. */
  get policy(): Policy {
    return this.#file?.current ?? NO_RULES;
  }

  /** The rule that decides about a dial, with its place; nothing is counted. */
  report(
    question: RequestedDial,
    agent: LinkPeer | undefined,
  ): PolicyAnswer {
    return ruleReport(question, agent, this.dials, this.#file);
  }

  /** The policy file, to be read again when it changes. */
  get source(): ReloadSource | undefined {
    const file = this.#file;
    return file && {
      kind: "policy",
      files: [file.path],
      reload: () =>
        file.reload() ? "reloaded, it decides about the next dials" : undefined,
    };
  }
}

/** Longer is no policy but a mistake. */
export const POLICY_BYTES_MAX = 1024 * 1024;

/** One sentence that names the file, the place in it and the remedy. */
export class PolicyError extends FileError {
  override readonly name = "PolicyError";
  override readonly tunnelCode: Code = "TUN124";
}

/**
 * A policy file, and the policy that was read from it last. A new file that
 * cannot be used leaves the old policy in use.
 */
export class PolicyFile {
  #text: string;
  #current: Policy;

  /** @throws {PolicyError} */
  constructor(readonly path: string) {
    this.#text = readText(path);
    this.#current = readPolicy(path, this.#text);
  }

  /** Its source. */
  get text(): string {
    return this.#text;
  }

  /** The policy that is in use now. */
  get current(): Policy {
    return this.#current;
  }

  /**
   * Reads the file again.
   *
   * @returns Whether the policy has changed.
   * @throws {PolicyError} And the old policy stays in use.
   */
  reload(): boolean {
    const text = readText(this.path);
    if (text === this.#text) return false;
    this.#current = readPolicy(this.path, text);
    this.#text = text;
    return true;
  }
}

function readText(path: string): string {
  try {
    const { size } = Deno.statSync(path);
    if (size > POLICY_BYTES_MAX) {
      throw refusal(path, `it is longer than ${POLICY_BYTES_MAX} bytes`);
    }
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof PolicyError) throw error;
    throw refusal(path, systemProblem(error));
  }
}

/**
 * Reads a policy.
 *
 * @param path For messages; its ending says the form.
 * @throws {PolicyError}
 */
export function readPolicy(path: string, text: string): Policy {
  try {
    // An empty file must not open a door that was closed by one that was full.
    return new Policy(parseFile(path, text));
  } catch (error) {
    throw refusal(path, problemIn(text, error));
  }
}

function refusal(path: string, problem: string): PolicyError {
  return new PolicyError(`Cannot use the policy file ${path}: ${problem}`);
}
