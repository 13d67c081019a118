/**
 * Asks a running proxy about itself, for `tunnel services` and `tunnel endpoints`.
 *
 * @module
 */

import type { ProxyStatus } from "../../services/proxy/status/proxy_status.ts";
import { PROXY_STATUS_PATH } from "../../services/proxy/status/proxy_path.ts";
import { parseHostPort } from "../flags/addresses.ts";
import { PROXY_ADMIN_PORT } from "../flags/admin_flags.ts";
import { booleanFlag, textFlag } from "../flags/flag.ts";
import { GENERAL_FLAGS } from "../flags/log_flags.ts";
import { askedClient } from "../program/asked_client.ts";
import type { CommandContext } from "../program/command.ts";

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
 * @throws {AdminError} When it does not answer.
 */
export async function queryProxy(
  context: Pick<CommandContext, "printError">,
  at: string,
  service?: string,
): Promise<ProxyStatus> {
  const query = service === undefined
    ? ""
    : `?service=${encodeURIComponent(service)}`;
  const address = { kind: "tcp", ...parseHostPort("--proxy", at) } as const;
  const client = askedClient({ program: "proxy", address }, context);
  return await client.get<ProxyStatus>(PROXY_STATUS_PATH + query);
}
