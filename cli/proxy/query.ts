/**
 * Asks a running proxy about itself, for `tunnel services` and `tunnel endpoints`.
 *
 * @module
 */

import type { ProxyStatus } from "../../agent/proxy/status/proxy_status.ts";
import { PROXY_STATUS_PATH } from "../../agent/proxy/status/proxy_path.ts";
import { CommandFailure, ExitCode } from "../program/exit_codes.ts";
import { parseHostPort } from "../flags/addresses.ts";
import { booleanFlag, textFlag } from "../flags/flag.ts";
import { GENERAL_FLAGS } from "../flags/log_flags.ts";

/** Where a proxy answers questions about itself unless it is told otherwise. */
export const PROXY_ADMIN_PORT = 8096;

const WHERE = "Where";

/** How long the proxy may take to answer. */
const QUERY_TIMEOUT_MS = 10_000;

/** Of both commands. */
export const QUERY_FLAGS = {
  "proxy": textFlag(`127.0.0.1:${PROXY_ADMIN_PORT}`, {
    group: WHERE,
    placeholder: "HOST:PORT",
    help: "Admin port of the proxy, or of the agent that has one.",
  }),
  "json": booleanFlag(false, { group: WHERE, help: "Print JSON." }),
  ...GENERAL_FLAGS,
} as const;

/**
 * Asks.
 *
 * @param service Only this one: `namespace/name`.
 * @throws {CommandFailure} When it does not answer.
 */
export async function queryProxy(
  at: string,
  service?: string,
): Promise<ProxyStatus> {
  const { host, port } = parseHostPort("--proxy", at);
  const url = new URL(
    `http://${
      host.includes(":") ? `[${host}]` : host
    }:${port}${PROXY_STATUS_PATH}`,
  );
  if (service !== undefined) url.searchParams.set("service", service);
  const fail = (problem: string) => {
    throw new CommandFailure(
      ExitCode.FAILURE,
      `Cannot ask the proxy at ${at}: ${problem}; give its admin port with ` +
        "--proxy",
    );
  };
  try {
    const signal = AbortSignal.timeout(QUERY_TIMEOUT_MS);
    const response = await fetch(url, { signal });
    if (response.ok) return await response.json();
    return fail(`it answered ${response.status}`);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    if (error instanceof SyntaxError) return fail("what answers is no proxy");
    const isTimeout = (error as Error).name === "TimeoutError";
    return fail(
      isTimeout
        ? `no answer within ${QUERY_TIMEOUT_MS / 1_000} s`
        : "nobody answers there",
    );
  }
}

/** `12`, `3.4k`, `1.2G`: short enough for a column. */
export function shortCount(count: number): string {
  const unit = ["", "k", "M", "G", "T", "P"];
  let power = 0;
  let rest = count;
  while (rest >= 1_000 && power < unit.length - 1) {
    rest /= 1_000;
    power++;
  }
  const digits = power > 0 && rest < 10 ? 1 : 0;
  return `${rest.toFixed(digits)}${unit[power]}`;
}
