/**
 * Running as somebody who may not read what is not theirs.
 *
 * @module
 */

import type { Mistake } from "./mistake.ts";

/** Who owns it meanwhile: nobody who is root. */
const SOMEBODY_ELSE = 65_534;

/**
 * As root: without root's right to read everything, and with a directory that is
 * somebody else's. As anybody else: with one that lets nobody in.
 */
export function withoutPrivilege(
  directory: string,
): Pick<Mistake, "prefix" | "around"> {
  if (Deno.uid() !== 0) {
    return {
      around: async (run) => {
        Deno.chmodSync(directory, 0);
        await run().finally(() => Deno.chmodSync(directory, 0o700));
      },
    };
  }
  return {
    prefix: [
      "setpriv",
      "--bounding-set=-dac_override,-dac_read_search",
      "--inh-caps=-dac_override,-dac_read_search",
    ],
    around: async (run) => {
      Deno.chownSync(directory, SOMEBODY_ELSE, SOMEBODY_ELSE);
      await run().finally(() => Deno.chownSync(directory, 0, 0));
    },
  };
}
