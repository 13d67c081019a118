// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * What takes long to go wrong.
 *
 * Usage: `deno task lab soak [scenarios] [connections] [load] [ids]
 * [join] [renewals] [rejoin] [flap]
 * [--minutes N] [--scenarios N] [--seed N] [--idle N] [--flapping N]
 * [--maker ours|konnectivity]`
 *
 * - `scenarios`: a hundred thousand of the simulation;
 * - `connections`: ten thousand idle ones and a thousand that come and go, on
 *   real processes;
 * - `load`: everything at once, with an agent that is killed again and again;
 * - `ids`: new connections for twenty seconds, on links that begin near their
 *   last stream id and so are replaced every few seconds;
 * - `join`: from nothing to the first byte behind a new node;
 * - `renewals`: a thousand certificates renewed while connections go on;
 * - `rejoin`: two hundred agents whose server is killed and started again;
 * - `flap`: a service proxy under TCP and UDP load while endpoints come and go.
 *
 * All of them when none is named. Ends with `N passed, N failed, N skipped`.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { Tally } from "../../tests/support/watch/tally.ts";
import { soakConnections } from "./connections.ts";
import { soakFirstJoin } from "./first_join.ts";
import { soakFlap } from "./flap.ts";
import { soakMixedLoad } from "./mixed_load.ts";
import { soakRejoin } from "./rejoin.ts";
import { soakRenewals } from "./renewals.ts";
import { soakScenarios } from "./scenarios.ts";
import { soakStreamIds } from "./stream_ids.ts";

const PARTS = [
  ...["scenarios", "connections", "load", "ids"] as const,
  ...["join", "renewals", "rejoin", "flap"] as const,
] as const;
const DEFAULTS = {
  scenarios: "100000",
  idle: "10000",
  flapping: "1000",
  maker: "ours",
};

/** Minutes of the parts that have a duration. */
const CONNECTIONS_MINUTES = 10;
const LOAD_MINUTES = 5;
const FLAP_MINUTES = 30;

/** Seeds are 32-bit numbers; there must be room for a run behind the first. */
const SEED_LIMIT = 2 ** 31;

async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, {
    string: ["minutes", "scenarios", "seed", "idle", "flapping", "maker"],
    default: DEFAULTS,
  });
  const wanted = flags._.map(String);
  const wrong = wanted.find((name) => !PARTS.some((part) => part === name));
  const maker = (["ours", "konnectivity"] as const)
    .find((known) => known === flags.maker);
  const counts = [flags.scenarios, flags.idle, flags.flapping].map(Number);
  const minutes = flags.minutes ? Number(flags.minutes) : undefined;
  const seed = Number(flags.seed ?? Math.floor(Math.random() * SEED_LIMIT));
  const areNumbers = [...counts, minutes ?? 1, seed].every((one) => one >= 0);
  if (wrong !== undefined || maker === undefined || !areNumbers) {
    console.error(
      `Usage: deno task lab soak [${PARTS.join("] [")}] [--minutes N] ` +
        "[--scenarios N] [--seed N] [--idle N] [--flapping N] " +
        "[--maker ours|konnectivity]",
    );
    return 2;
  }
  const tally = new Tally();
  const has = (part: typeof PARTS[number]) =>
    wanted.length === 0 || wanted.includes(part);
  const [scenarios, idle, flapping] = counts as [number, number, number];
  if (has("scenarios")) await soakScenarios(scenarios, seed, tally);
  if (has("connections")) {
    const options = { minutes: minutes ?? CONNECTIONS_MINUTES, idle, flapping };
    await soakConnections(options, tally);
  }
  if (has("load")) {
    await soakMixedLoad(minutes ?? LOAD_MINUTES, maker, tally);
  }
  if (has("ids")) await soakStreamIds(tally);
  if (has("join")) await soakFirstJoin(tally);
  if (has("renewals")) await soakRenewals(tally);
  if (has("rejoin")) await soakRejoin(tally);
  if (has("flap")) await soakFlap(minutes ?? FLAP_MINUTES, tally);
  return tally.end();
}

if (import.meta.main) Deno.exit(await main());
