/**
 * The policy file of one server, and the deciders that use it.
 *
 * @module
 */

import type { PolicyAnswer } from "../../proto/admin/path_check.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import { ruleReport } from "./rule_report.ts";
import type { Code } from "../../proto/codes/codes.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import type { AdminCandidate } from "./grant_entries.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { AuditTrail } from "../../policy/audit_trail.ts";
import type { ReloadSource } from "../../platform/reload/reloads.ts";
import {
  type Identifiers,
  NO_IDENTIFIERS,
} from "../../proto/peer/identifiers.ts";
import { counted } from "../metrics/metric_families.ts";
import { DialAuthorizer, type RequestedDial } from "./dial_authorizer.ts";
import {
  SEES_EVERYTHING,
  type Visibility,
} from "../../services/catalog/model/model.ts";
import type { AuthorizationOptions } from "../options.ts";
import {
  DocumentError,
  parseFile,
  withLine,
} from "../../platform/documents/document.ts";
import { FieldError } from "../../platform/documents/document_map.ts";
import { FileError, systemProblem } from "../../platform/files/file_error.ts";
import { Policy } from "./policy.ts";

/** The permissions of a server's policy. */
export class Authorization {
  /** Authorizes every dial. */
  readonly dials: DialAuthorizer;
  readonly #policy: PolicyFile | undefined;

  /** @param trail Absent: nothing is recorded. @throws {PolicyError} */
  constructor(
    { policyFile }: AuthorizationOptions,
    metrics: MetricRegistry,
    trail: AuditTrail | undefined,
  ) {
    if (policyFile !== undefined) this.#policy = PolicyFile.load(policyFile);
    this.dials = new DialAuthorizer({
      ...(this.#policy === undefined ? {} : { policy: this.#policy }),
      ...(trail === undefined ? {} : { trail }),
      refused: counted(
        metrics,
        "refused_dials",
        "Dials that the policy forbade, before any agent was asked.",
      ),
    });
  }

  /** What the policy lets `node` say that it serves, besides its own name. */
  grantsOf(node: string): Identifiers {
    return this.#policy?.current.grantsOf(node) ?? NO_IDENTIFIERS;
  }

  /** Whether the policy lets `node` announce a service, `namespace/name`. */
  mayOffer(node: string, service: string): boolean {
    return this.#policy?.current.mayOffer(node, service) ?? true;
  }

  /** The services that the policy lets `node` know of; all without one. */
  visibleTo(node: string): Visibility {
    return this.#policy?.current.visibleTo(node) ?? SEES_EVERYTHING;
  }

  /**
   * The rights of a person on the admin port; `undefined`: no entry names that
   * person.
   */
  adminRoleOf(candidate: AdminCandidate): AdminRole | undefined {
    return this.#policy?.current.adminRoleOf(candidate);
  }

  /** The rule that decides about a dial, with its place; nothing is counted. */
  report(
    question: RequestedDial,
    agent: LinkPeer | undefined,
  ): PolicyAnswer {
    return ruleReport(question, agent, this.dials, this.#policy);
  }

  /** The policy file, to be read again when it changes. */
  get source(): ReloadSource | undefined {
    const policy = this.#policy;
    return policy && {
      kind: "policy",
      files: [policy.path],
      reload: () =>
        policy.reload()
          ? "reloaded, it decides about the next dials"
          : undefined,
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
  #policy: Policy;

  private constructor(readonly path: string) {
    this.#text = readText(path);
    this.#policy = readPolicy(path, this.#text);
  }

  /** @throws {PolicyError} */
  static load(path: string): PolicyFile {
    return new PolicyFile(path);
  }

  /** Its source. */
  get text(): string {
    return this.#text;
  }

  /** The policy that is in use now. */
  get current(): Policy {
    return this.#policy;
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
    this.#policy = readPolicy(this.path, text);
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
    if (error instanceof DocumentError) throw refusal(path, error.message);
    if (!(error instanceof FieldError)) throw error;
    throw refusal(path, withLine(text, error));
  }
}

function refusal(path: string, problem: string): PolicyError {
  return new PolicyError(`Cannot use the policy file ${path}: ${problem}`);
}
