// deno-lint-ignore-file no-console -- its one line of output is its report.
/**
 * One attacker as a process: `attacker.ts NAME SITE`, where SITE is JSON, says
 * `ready`, waits for a line on standard input, attacks, and prints its report.
 *
 * @module
 */

import { LIVE_ATTACKS, type Site } from "./live_attacks.ts";

const [name, siteText] = Deno.args;
const attack = LIVE_ATTACKS.find((one) => one.name === name);
if (attack === undefined) throw new Error(`There is no attack ${name}`);
const site: Site = JSON.parse(siteText!);
console.log("ready");
await Deno.stdin.read(new Uint8Array(16));
const report = await attack.run(
  site,
  performance.now() + attack.seconds * 1_000,
);
console.log(JSON.stringify(report));
Deno.exit();
