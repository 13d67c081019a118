/**
 * How this program is started, from source, bundled or compiled: for `demo` and
 * for workers, which start it again, and for those who package it.
 *
 * @module
 */

import { RIGHTS } from "./rights.ts";

/**
 * A small nursery: buffers are pooled and garbage is rare, so a large one only
 * costs memory. And the collector at hand, for `net/libc/memory_relief.ts`.
 */
export const V8_FLAGS = "--v8-flags=--max-semi-space-size=2,--expose-gc";

/** Program and first words; a subcommand follows. */
export function selfCommand(): readonly [string, ...string[]] {
  const program = Deno.execPath();
  if (Deno.build.standalone) return [program];
  // From source the project's import map is needed; a bundle needs none, and
  // must not pick up what happens to lie in a folder above it.
  const isBundle = Deno.mainModule.endsWith(".js");
  return [
    program,
    "run",
    "--quiet",
    "--no-prompt",
    ...(isBundle ? ["--no-config", "--no-lock"] : []),
    V8_FLAGS,
    ...RIGHTS.programs,
    Deno.mainModule,
  ];
}
