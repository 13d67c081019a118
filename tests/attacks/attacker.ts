// deno-lint-ignore-file no-console -- its one line of output is its report.
/**
 * One attacker as a process: `attacker.ts NAME SITE`, where SITE is JSON, says
 * `ready`, waits for a line on standard input, attacks, and prints its report.
 *
 * @module
 */

import { LIVE_ATTACKS, type Site } from "./live_attacks.ts";

/** This file, for who starts it. */
export const ATTACKER = "attacker.ts";

if (import.meta.main) {
  const [name, siteText] = Deno.args;
  const attack = LIVE_ATTACKS.find((one) => one.name === name);
  if (attack === undefined) throw new Error(`There is no attack ${name}`);
  const site: Site = JSON.parse(siteText!);
  console.log("ready");
  await Deno.stdin.read(new Uint8Array(16));
  const untilMs = performance.now() + attack.seconds * 1_000;
  console.log(JSON.stringify(await attack.run(site, untilMs)));
  Deno.exit();
}
