// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Kills, cuts, freezes and starves real processes of a tunnel, one after the
 * other and in pairs, under a load that checks every byte, and says what each
 * fault cost and what it may cost.
 *
 * Usage: `deno task lab chaos [--seed N] [--minutes M] [--only fault,…] [--cut]
 * [--strict]`
 *
 * - without more: each fault once, then pairs of them for the rest of
 *   `--minutes`;
 * - `--cut`: each fault once, the short ones, in less than five minutes;
 * - `--only`: those whose names begin so, such as `kill` or `freeze-server`;
 * - `--strict`: what cannot be done on this machine is a failure.
 *
 * Same seed, same faults in the same order at the same victims; what the
 * machine does meanwhile is its own affair. Needs root, for namespaces in which
 * all of it runs and with which all of it goes. Ends with
 * `N passed, N failed, N skipped`.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { Tally } from "../../tests/support/watch/tally.ts";
import { debianLibrary } from "../../tests/support/program/debian.ts";
import {
  findPeer,
  PeerMissingError,
} from "../../tests/support/program/peers.ts";
import { programWords } from "../../tests/support/program/program.ts";
import { playAll, type RunPlan } from "./run.ts";
import {
  runInSandbox,
  sandboxFolder,
  sandboxObstacle,
  STOPPED,
} from "./sandbox.ts";

const USAGE = "Usage: deno task lab chaos [--seed N] [--minutes M] " +
  "[--only fault,…] [--cut] [--strict]";

const PEERS = ["wan", "etcd", "kube-apiserver", "kubectl"] as const;

/** Seeds are 32-bit numbers. */
const SEED_LIMIT = 2 ** 31;

async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, {
    string: ["seed", "minutes", "only", "inside"],
    boolean: ["cut", "strict"],
  });
  const seed = Number(flags.seed ?? Math.floor(Math.random() * SEED_LIMIT));
  const minutes = Number(flags.minutes ?? 0);
  if (!(seed >= 0) || !(minutes >= 0) || flags._.length > 0) {
    console.error(USAGE);
    return 2;
  }
  const plan: RunPlan = {
    ...{ seed, minutes },
    isCut: flags.cut === true,
    isStrict: flags.strict === true,
    only: String(flags.only ?? "").split(",").filter((name) => name !== ""),
  };
  const inside = sandboxFolder(Deno.args);
  if (inside !== undefined) return await playAll(plan, inside);
  return await outside(plan);
}

/** Fetches what has to come from elsewhere: there is no network inside. */
async function outside(plan: RunPlan): Promise<number> {
  const tally = new Tally();
  const obstacle = await sandboxObstacle() ?? await fetchPeers();
  if (obstacle !== undefined) {
    if (plan.isStrict) tally.fail("chaos", obstacle);
    else tally.skip("chaos", obstacle);
    return tally.end();
  }
  // Short: a unix socket's path has 107 bytes at most.
  const folder = await Deno.makeTempDir({ prefix: "chaos-" });
  const all = [...Deno.args, `--seed=${plan.seed}`];
  const code = await runInSandbox(import.meta.url, all, folder);
  if (code === 0 || code === STOPPED) {
    await Deno.remove(folder, { recursive: true });
  } else console.log(`logs are in ${folder}`);
  return code;
}

async function fetchPeers(): Promise<string | undefined> {
  try {
    for (const peer of PEERS) await findPeer(peer);
    programWords();
    // Faults that want a library that is missing say so themselves.
    await debianLibrary("libfaketime").catch(unlessMissing);
    return undefined;
  } catch (error) {
    unlessMissing(error);
    return (error as PeerMissingError).message;
  }
}

function unlessMissing(error: unknown): void {
  if (!(error instanceof PeerMissingError)) throw error;
}

if (import.meta.main) Deno.exit(await main());
