/**
 * Asks a running proxy about itself, for `tunnel services` and `tunnel endpoints`.
 *
 * @module
 */

import type { ProxyStatus } from "../../agent/proxy/status/proxy_status.ts";
import { PROXY_STATUS_PATH } from "../../agent/proxy/status/proxy_path.ts";
import { askAdmin } from "../program/ask_admin.ts";
import { PROXY_ADMIN_PORT } from "../flags/admin_flags.ts";
import { booleanFlag, textFlag } from "../flags/flag.ts";
import { GENERAL_FLAGS } from "../flags/log_flags.ts";

const WHERE = "Where";

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
 * The status of the proxy.
 *
 * @param service Only of this one: `namespace/name`.
 * @throws {CommandFailure} When it does not answer.
 */
export async function queryProxy(
  at: string,
  service?: string,
): Promise<ProxyStatus> {
  const query = service === undefined
    ? ""
    : `?service=${encodeURIComponent(service)}`;
  const path = PROXY_STATUS_PATH + query;
  const answer = await askAdmin({ who: "proxy", at, flag: "--proxy", path });
  return answer as ProxyStatus;
}
