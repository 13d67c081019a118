/**
 * Flags of programs that are asked about themselves: by which ways, and by whom.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import type { AdminAccess } from "../../net/listen/admin_port.ts";
import { type FlagValues, inGroup, textFlag } from "./flag.ts";
import { UsageError } from "./usage_error.ts";
import { given } from "./given.ts";

const GROUP = "Health, admin, shutdown";

/** No socket at all. */
export const NO_SOCKET = "none";

/** Of servers, agents and proxies. */
export const ADMIN_ACCESS_FLAGS = inGroup(GROUP, {
  "admin-socket": textFlag("", {
    placeholder: "PATH",
    help:
      "Unix socket of the admin API (docs/observability.md), for this user and " +
      "root; none: there is no socket.",
    defaultText: "admin.sock in --state-dir",
  }),
  "admin-socket-group": textFlag("", {
    placeholder: "GROUP",
    help: "Users of this group may ask by that socket, too, and change " +
      "nothing: a name or a number.",
  }),
});

/**
 * @param stateDirectory Where tokens are, and the socket unless one is named.
 * @throws {UsageError} One line.
 */
export function adminAccess(
  values: FlagValues<typeof ADMIN_ACCESS_FLAGS>,
  stateDirectory?: string,
): AdminAccess {
  const path = values["admin-socket"];
  const group = values["admin-socket-group"];
  if (path === NO_SOCKET && group !== "") {
    throw new UsageError(
      "Cannot use --admin-socket-group without a socket: remove it, or " +
        "--admin-socket=none",
    );
  }
  return given({
    stateDirectory,
    socket: path === NO_SOCKET ? "" : path || undefined,
    socketGroup: group === "" ? undefined : groupId(group),
  });
}

const GROUP_FILE = "/etc/group";

/** @throws {UsageError} There is none of that name. */
function groupId(group: string): number {
  if (/^\d{1,9}$/.test(group)) return Number(group);
  let text: string;
  try {
    text = Deno.readTextFileSync(GROUP_FILE);
  } catch (error) {
    throw new UsageError(
      `Cannot use --admin-socket-group ${group}: ${messageOf(error)}; give ` +
        "its number",
    );
  }
  const found = text.split("\n").map((line) => line.split(":"))
    .find(([name]) => name === group);
  if (found !== undefined) return Number(found[2]);
  throw new UsageError(
    `Cannot use --admin-socket-group: there is no group "${group}" in ` +
      `${GROUP_FILE}; give its name there, or its number`,
  );
}

/** Any number will do. */
const SOME_GROUP = "0";

/** For a check on another machine: names of groups are in a file of that one. */
export function withSomeGroup<
  Values extends { readonly "admin-socket-group": string },
>(values: Values): Values {
  const group = values["admin-socket-group"] === "" ? "" : SOME_GROUP;
  return { ...values, "admin-socket-group": group };
}
