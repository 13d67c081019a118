// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * What takes long to go wrong.
 *
 * Usage: `deno task lab soak [connections] [rejoin] [--minutes N] [--idle N]
 * [--flapping N]`
 *
 * - `connections`: ten thousand idle ones and a thousand that come and go, on
 *   real processes;
 * - `rejoin`: two hundred agents whose server is killed and started again.
 *
 * All of them when none is named. Ends with `N passed, N failed, N skipped`.
 * Very many scenarios of the simulation are `deno task lab simulate`; faults
 * under load are `deno task lab chaos`.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { Tally } from "../../tests/support/watch/tally.ts";
import { soakConnections } from "./connections.ts";
import { soakRejoin } from "./rejoin.ts";

const PARTS = ["connections", "rejoin"] as const;

const CONNECTIONS_MINUTES = 10;

async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, {
    string: ["minutes", "idle", "flapping"],
    default: { idle: "10000", flapping: "1000" },
  });
  const wanted = flags._.map(String);
  const wrong = wanted.find((name) => !PARTS.some((part) => part === name));
  const [idle, flapping] = [Number(flags.idle), Number(flags.flapping)];
  const minutes = flags.minutes ? Number(flags.minutes) : undefined;
  const areNumbers = [idle, flapping, minutes ?? 1].every((one) => one >= 0);
  if (wrong !== undefined || !areNumbers) {
    console.error(
      `Usage: deno task lab soak [${PARTS.join("] [")}] [--minutes N] ` +
        "[--idle N] [--flapping N]",
    );
    return 2;
  }
  const tally = new Tally();
  const has = (part: typeof PARTS[number]) =>
    wanted.length === 0 || wanted.includes(part);
  if (has("connections")) {
    const options = { minutes: minutes ?? CONNECTIONS_MINUTES, idle, flapping };
    await soakConnections(options, tally);
  }
  if (has("rejoin")) await soakRejoin(tally);
  return tally.end();
}

if (import.meta.main) Deno.exit(await main());
