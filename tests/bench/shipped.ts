/**
 * Our program as it is shipped: one module of JavaScript, with the flags and
 * permissions of the packaged file (`scripts/package.ts`), but for the packing.
 *
 * From source each process would keep a module graph and 15 MB for it.
 *
 * @module
 */

import { permissionCase } from "../../scripts/launcher.ts";
import { bundleProgram, RUN_FLAGS } from "../../scripts/package.ts";

/**
 * Has `ourCommand` start what is shipped, unless `TUNNEL` names a program
 * already.
 *
 * @param folder Where to put it.
 */
export async function useShipped(folder: string): Promise<void> {
  if (Deno.env.get("TUNNEL")) return;
  const module = `${folder}/tunnel.js`;
  await Deno.writeFile(module, await bundleProgram());
  const program = `${folder}/tunnel`;
  await Deno.writeTextFile(
    program,
    `#!/bin/sh
${permissionCase()}
exec "${Deno.execPath()}" run ${RUN_FLAGS.join(" ")} $allow ${module} "$@"
`,
  );
  await Deno.chmod(program, 0o755);
  Deno.env.set("TUNNEL", program);
}
