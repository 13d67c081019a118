/**
 * The permissions of the packaged program's commands, and how this program is
 * started, from source, bundled or compiled: for `demo` and workers, which
 * start it again, and for packaging.
 *
 * Each command states its permissions beside its flags (`command.ts`); the
 * launcher and the table of docs/security.md are generated from that. There are
 * three sets, each with all of the one before. Reading and the environment are
 * open to all: flags decide which files and variables are read. Nothing is
 * asked for at run time (`--no-prompt`).
 *
 * @module
 */

import { quietly } from "../../platform/errors/error_code.ts";

/** Ids and modes of private files, the host's name as a default. */
const LOOK = ["--allow-read", "--allow-env", "--allow-sys=uid,gid,hostname"];

/**
 * Connecting to a unix socket counts as reading and writing its path. TCP needs
 * FFI for the C library (`net/libc/libc.ts`; the platform cannot limit it to a
 * library that the system finds by its name). `umask`, `inspector` and how full
 * a disk is have no names of their own among `sys`. `--unstable-net` is
 * `Deno.listenDatagram`: a datagram costs a third of what it costs through
 * `node:dgram`.
 */
const NETWORK = [
  ...["--allow-net", "--allow-read", "--allow-write", "--allow-env"],
  ...["--allow-sys", "--allow-ffi", "--unstable-net"],
];

/** Flags of `deno run` by set, the smallest first. */
export const RIGHTS = {
  look: LOOK,
  network: NETWORK,
  programs: [...NETWORK, "--allow-run"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/**
 * - `look`: reads files and prints.
 * - `network`: sockets, the server's state, and other resources of the machine,
 *   but starts no program (unless {@linkcode RUNS_PROGRAMS} says so).
 * - `programs`: starts other programs, so it needs all their permissions.
 */
export type Rights = keyof typeof RIGHTS;

/**
 * A kubeconfig may name a program that gives credentials (exec plugins), and
 * workers are processes of the same program. Only with one of these flags, in
 * the command's words or in its configuration file, or one of these variables,
 * may a command of `network` run others.
 */
export const RUNS_PROGRAMS = {
  /** Compared as the shell compares names; `_` is equal to `-`. */
  flags: ["-*kubeconfig", "-*kube[-_]config", "-workers", "--workers"],
  variables: [
    ...["TUNNEL_WORKERS", "KUBECONFIG", "TUNNEL_KUBECONFIG"],
    ...["TUNNEL_KUBE_CONFIG", "TUNNEL_DISCOVERY_KUBECONFIG"],
    "TUNNEL_BOOTSTRAP_KUBECONFIG",
  ],
} as const;

/** Commands that read their files again on SIGHUP, and never end by it. */
export const RELOADING: readonly string[] = [
  ...["server", "agent", "proxy", "yurttunnel-agent"],
];

/**
 * A small nursery: buffers are pooled and garbage is rare, so a large one only
 * costs memory. And the collector at hand, for `net/libc/memory_relief.ts`.
 */
export const V8_FLAGS = "--v8-flags=--max-semi-space-size=2,--expose-gc";

/**
 * What the launcher adds (`DENO_V8_FLAGS`) within a small limit of memory. With
 * `--optimize-for-size` the heap grows by little; compilers that run beside the
 * program, and the last of three, need 5 MB more at the wrong time.
 */
export const V8_FLAGS_SMALL =
  "--optimize-for-size,--no-concurrent-recompilation,--no-turbofan";

/** The packaged file that this came out of, as `scripts/launcher.ts` says it. */
export const OWN_FILE = "_TUNNEL_FILE";

/** Set: the packaged file makes sure that all of it is whole. */
export const CHECKS_FILE = "_TUNNEL_CHECK";

/** Program and first words; a subcommand follows. */
export function selfCommand(): readonly [string, ...string[]] {
  const program = Deno.execPath();
  if (Deno.build.standalone) return [program];
  const file = Deno.env.get(OWN_FILE);
  // Somebody has emptied the folder that it was unpacked into: once more.
  const isThere = (part: string | URL) =>
    quietly(() => Deno.statSync(part))?.isFile;
  if (file && ![program, new URL(Deno.mainModule)].every(isThere)) {
    return [file];
  }
  // From source the project's import map is needed; a bundle needs none, and
  // must not use one that happens to be in a folder above it.
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
