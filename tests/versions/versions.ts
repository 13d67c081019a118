/**
 * Two versions beside each other: the one of these sources, and an older one.
 *
 * @module
 */

import { ourCommand } from "../support/program/tunnel.ts";
import { olderProgram } from "../support/program/older_program.ts";

/** As makers of servers and agents are named. */
export type Version = "ours" | "older";

/** Which is on which side: both ways, since nobody upgrades all at once. */
export const PAIRS: readonly (readonly [Version, Version])[] = [
  ["older", "ours"],
  ["ours", "older"],
];

/** The command line of a version, whatever the command. */
export async function commandOfVersion(
  version: Version,
  ...words: readonly string[]
): Promise<string[]> {
  if (version === "ours") return ourCommand(...words);
  return [await olderProgram(), ...words];
}
