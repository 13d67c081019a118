/**
 * Variables that look like ours and are not: a typo in a name is an error, as it is
 * on a command line or in a file.
 *
 * @module
 */

import { TLS_VARIABLE } from "../../net/tls/openssl/tls_choice.ts";
import { SOCKETS_VARIABLE } from "../../net/poll/socket_choice.ts";
import { editDistance } from "../../platform/text/nearest.ts";
import type { FlagTable } from "./flag.ts";
import { environmentName } from "./read_flags.ts";
import { UsageError } from "./usage_error.ts";

/** A name that differs more is another program's: cloudflared's begin like ours. */
const SLIPS_MAX = 2;

/** Only `scripts/launcher.ts` reads it. */
const CACHE_VARIABLE = "TUNNEL_CACHE_DIR";

/** What Kubernetes sets beside a Service whose name begins with `tunnel`. */
const SERVICE_LINK =
  /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?$/;

/**
 * @param names Of all variables.
 * @param table Of the command that is to run.
 * @param others Tables of all commands, loaded when something looks odd: one
 *   environment may serve several.
 * @throws {UsageError} For the first that must be a slip.
 */
export async function checkVariables(
  names: Iterable<string>,
  table: FlagTable,
  others: () => Promise<readonly FlagTable[]>,
): Promise<void> {
  const own = namesOf(table);
  for (const name of names) {
    if (!name.startsWith("TUNNEL_") || own.has(name)) continue;
    const meant = [...own].find((known) => isSlip(name, known));
    if (meant === undefined || SERVICE_LINK.test(name)) continue;
    const all = (await others()).map(namesOf);
    if (all.some((known) => known.has(name))) continue;
    throw new UsageError(
      `Unknown variable $${name}; did you mean $${meant}? (unset it if it ` +
        "belongs to another program)",
      "TUN101",
    );
  }
}

function namesOf(table: FlagTable): ReadonlySet<string> {
  const names = Object.entries(table).flatMap((
    [flag, { environment = [] }],
  ) => [environmentName(flag), ...environment]);
  return new Set([...names, SOCKETS_VARIABLE, TLS_VARIABLE, CACHE_VARIABLE]);
}

function isSlip(seen: string, known: string): boolean {
  return Math.abs(seen.length - known.length) <= SLIPS_MAX &&
    editDistance(seen, known) <= SLIPS_MAX;
}
