/**
 * Which Deno is inside the packaged program, to the byte: the largest part of
 * what is shipped is what was looked at, whatever a registry says today.
 *
 * To take another one: change version and integrity of all, run the tests with
 * it, and say so in the changelog. `npm view @deno/linux-x64-glibc@VERSION
 * dist.integrity` tells what the registry has; compare it with another way to
 * get the same file, such as `sha256sum` of Deno's release on GitHub.
 *
 * @module
 */

import type { PinnedPackage } from "./npm_registry.ts";

/** Linux's processors, for which there are packages of Debian, too. */
export type Architecture = "x64" | "arm64";

/** What is packaged for: a system and its processor. */
export type Platform =
  | Architecture
  | "macos-x64"
  | "macos-arm64"
  | "windows-x64";

/** The runtime of a platform. */
export interface RuntimePin extends PinnedPackage {
  /** How files for it are called. */
  readonly label: string;
  /** The runtime's in the package. */
  readonly file: string;
}

/** See the module description. */
export const RUNTIME_PINS: Readonly<Record<Platform, RuntimePin>> = {
  x64: {
    name: "@deno/linux-x64-glibc",
    version: "2.9.6",
    integrity:
      "sha512-3md4TKLCuzsLDmfOoC5KN7NAZaxSVkMgm64vg6foD00JBADCpYS2/5QqXfzgnP5ZQz3iLP9vBQJtEgc116OAoQ==",
    label: "linux-x64",
    file: "deno",
  },
  arm64: {
    name: "@deno/linux-arm64-glibc",
    version: "2.9.6",
    integrity:
      "sha512-poqhoH9B3nYloigEMPT5t8HY+wBeiuea1An5Q7fqgJzP0SYmWsoS/oUnWO/pEiA4ofzIBy1Elt/in58xKtxEoQ==",
    label: "linux-arm64",
    file: "deno",
  },
  "macos-x64": {
    name: "@deno/darwin-x64",
    version: "2.9.6",
    integrity:
      "sha512-tPi3CWPRdjW1MaWlvWjORE7Ass5SADdWdj1BF1Q1PEdzi+5u/mC5YhmZzniMiPr81PpaFeqjXaLAsfb8lFsZ0Q==",
    label: "macos-x64",
    file: "deno",
  },
  "macos-arm64": {
    name: "@deno/darwin-arm64",
    version: "2.9.6",
    integrity:
      "sha512-V8uO1Aolrl/yvdMb5lOtgtigs8YuZBjrOrgviVMiYkQ0swymFfzkae1wZak4Xi24t7vf7d/eiMb/7ryjjVm+tg==",
    label: "macos-arm64",
    file: "deno",
  },
  "windows-x64": {
    name: "@deno/win32-x64",
    version: "2.9.6",
    integrity:
      "sha512-qRGnmVz/Ea6UWPht/S3xFRK17UZ/ls38DSVfgGB17fpASLxPkksqzWUI/BzL9YYoOknYzfc94mySGyInZu/JXw==",
    label: "windows-x64",
    file: "deno.exe",
  },
};
