/**
 * Which Deno is inside the packaged program, to the byte: the largest part of
 * what is shipped is what was looked at, whatever a registry says today.
 *
 * To take another one: change version and integrity of both, run the tests with
 * it, and say so in the changelog. `npm view @deno/linux-x64-glibc@VERSION
 * dist.integrity` tells what the registry has; compare it with another way to
 * get the same file, such as `sha256sum` of Deno's release on GitHub.
 *
 * @module
 */

import type { PinnedPackage } from "./npm_registry.ts";

/** Processors that are packaged for. */
export type Architecture = "x64" | "arm64";

/** See the module description. */
export const RUNTIME_PINS: Readonly<
  Record<Architecture, PinnedPackage & { readonly note?: string }>
> = {
  x64: {
    name: "@deno/linux-x64-glibc",
    version: "2.9.6",
    integrity:
      "sha512-3md4TKLCuzsLDmfOoC5KN7NAZaxSVkMgm64vg6foD00JBADCpYS2/5QqXfzgnP5ZQz3iLP9vBQJtEgc116OAoQ==",
  },
  arm64: {
    name: "@deno/linux-arm64-glibc",
    version: "2.9.5",
    integrity:
      "sha512-IuYjsz9PGl7CJcNXMuN27KNDB8Q40brK3SG3l+TXMDVW61ZKwcn0fQHBHnXFiiygEwI8by/fKnASEluhZB1atw==",
    note: "npm had no 2.9.6 for arm64 on 2026-11-22",
  },
};
