/**
 * What can go wrong between this process and a Kubernetes API server. Both are
 * the world's fault; their messages name the request and the next step.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { StatusObject } from "./objects.ts";
import { NeighbourConfigError } from "../tls_files.ts";

/** A request that was refused, or not answered. */
export class KubernetesError extends Error {
  override readonly name = "KubernetesError";
  readonly tunnelCode: Code = "TUN802";

  /**
   * @param code HTTP's; 0 when there was no answer, or none that is one.
   * @param reason The API's word, such as `NotFound` or `AlreadyExists`.
   */
  constructor(
    readonly code: number,
    readonly reason: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A request was not answered. */
export class NoAnswerError extends KubernetesError {
  /** @param what The same for every request: `no answer from https://…`. */
  constructor(request: string, readonly what: string, options?: ErrorOptions) {
    super(0, "", `Cannot ${request}: ${what}`, options);
  }
}

/**
 * Whether the error has an outside cause: this API server, or the path to it.
 */
export function isKubernetesTrouble(
  error: unknown,
): error is KubernetesError | NeighbourConfigError {
  return error instanceof KubernetesError ||
    error instanceof NeighbourConfigError;
}

/** The HTTP status of a refused request; 0 without an answer. */
export function codeOf(error: unknown): number | undefined {
  return error instanceof KubernetesError ? error.code : undefined;
}

/** The requested object; `undefined`: there is no such object. */
export async function unlessMissing<T>(
  asking: Promise<T>,
): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (codeOf(error) === 404) return undefined;
    throw error;
  }
}

/** @param code HTTP's; 0 without an answer. */
export type CallReport = (
  code: number,
  reason: string,
  durationMs: number,
) => void;

/** Reports how a call goes that begins now. */
export async function reporting<T>(
  clock: Clock,
  report: CallReport,
  call: Promise<T>,
): Promise<T> {
  const beginMs = clock.now();
  try {
    const result = await call;
    report(200, "", clock.now() - beginMs);
    return result;
  } catch (error) {
    if (error instanceof KubernetesError) {
      report(error.code, error.reason, clock.now() - beginMs);
    }
    throw error;
  }
}

/** Largest part of an answer without form that is quoted. */
const QUOTE_LENGTH_MAX = 200;

/**
 * The error for an answer of the API server.
 *
 * @param request Method and path, for the message.
 * @param body A `Status` as a rule; proxies in between answer anything.
 */
export function errorFromAnswer(
  request: string,
  code: number,
  body: string,
): KubernetesError {
  const status = parseStatus(body);
  const reason = status?.reason ?? "";
  const said = status?.message ?? body.trim().slice(0, QUOTE_LENGTH_MAX);
  return new KubernetesError(
    code,
    reason,
    `Cannot ${request}: the API server answered ${code}` +
      `${reason === "" ? "" : ` ${reason}`}${said === "" ? "" : `: ${said}`}` +
      remedy(code),
  );
}

function remedy(code: number): string {
  if (code === 401) return "; check the token or certificate it was shown";
  if (code === 403) return "; grant this user that verb by a Role";
  return "";
}

/** The `Status` in `body`, if it is one. */
export function parseStatus(body: string): StatusObject | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isStatus(value) ? value : undefined;
  } catch {
    // Not JSON: a proxy between us and the API server has answered.
    return undefined;
  }
}

/** Whether a decoded object is a `Status`. */
export function isStatus(value: unknown): value is StatusObject {
  return typeof value === "object" && value !== null &&
    (value as StatusObject).kind === "Status";
}
