/**
 * Asks a program of ours that runs, on its admin port, about itself.
 *
 * @module
 */

import { hostPort } from "../../proto/peer/host_port.ts";
import { parseHostPort } from "../flags/addresses.ts";
import { CommandFailure, ExitCode } from "./exit_codes.ts";

/** How long an answer may take. */
const TIMEOUT_MS = 5_000;

/** Whom to ask for what. */
export interface AdminQuestion {
  /** Such as `proxy`. */
  readonly who: string;
  /** `HOST:PORT` of its admin port. */
  readonly at: string;
  /** The flag that gives `at`. */
  readonly flag: string;
  readonly path: string;
}

/**
 * The answer, which is JSON.
 *
 * @throws {CommandFailure} When there is none.
 */
export async function askAdmin(question: AdminQuestion): Promise<unknown> {
  const { at, flag, path } = question;
  const { host, port } = parseHostPort(flag, at);
  const url = `http://${hostPort(host, port)}${path}`;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { signal });
    if (response.ok) return await response.json();
    await response.body?.cancel();
    const { status } = response;
    throw notAnswered(question, `it answered ${status}`);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw notAnswered(question, problemOf(error, question.who));
  }
}

/** The failure when the answer is of no use. */
export function notAnswered(
  { who, at, flag }: Pick<AdminQuestion, "who" | "at" | "flag">,
  problem: string,
): CommandFailure {
  return new CommandFailure(
    ExitCode.FAILURE,
    `Cannot ask the ${who} at ${at}: ${problem}; give its admin port with ` +
      flag,
    undefined,
    "TUN121",
  );
}

function problemOf(error: unknown, who: string): string {
  if (error instanceof SyntaxError) return `what answers is no ${who}`;
  return (error as Error).name === "TimeoutError"
    ? `no answer within ${TIMEOUT_MS / 1_000} s`
    : "nobody answers there";
}
