/**
 * How this program is started, from source, bundled or compiled: for `demo`,
 * which starts it several times, and for those who package it. And what each
 * command of the packaged program asks the platform for, and why: the launcher
 * gives no command more. From source all run with {@linkcode PERMISSIONS}, which
 * is the union.
 *
 * Reading and the environment are open to all: which files and variables are
 * read is what flags say. Nothing is asked for at run time (`--no-prompt`).
 *
 * @module
 */

/**
 * Permissions for `deno run`, least first. `ffi` and `sys` because the
 * platform has no call for a TCP reset or a host's name; `run` because `demo`
 * starts servers and agents. `--unstable-net` is `Deno.listenDatagram`: a
 * datagram costs a third of what it costs through `node:dgram`.
 */
export const PERMISSIONS: readonly string[] = [
  "--allow-net",
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-sys",
  "--allow-run",
  "--allow-ffi",
  "--unstable-net",
];

/**
 * A small nursery: buffers are pooled and garbage is rare, so a large one only
 * costs memory. And the collector at hand, for `net/libc/memory_relief.ts`.
 */
export const V8_FLAGS = "--v8-flags=--max-semi-space-size=2,--expose-gc";

/** Ids and modes of private files, the host's name as a default. */
const SYS = "--allow-sys=uid,gid,hostname";

/** Besides, which families of addresses there are (`families.ts`). */
const SOCKETS_SYS = `${SYS},networkInterfaces`;

const LOOK = ["--allow-read", "--allow-env", SYS] as const;

/**
 * Sockets: connecting to a unix socket counts as reading and writing its path,
 * FFI is what TCP needs of the C library (`net/libc/libc.ts`; the platform
 * cannot limit it to a library that the system finds by its name).
 */
const SOCKETS = [
  ...LOOK.filter((flag) => flag !== SYS),
  SOCKETS_SYS,
  "--allow-net",
  "--allow-write",
  "--allow-ffi",
  "--unstable-net",
] as const;

/**
 * Listens on unix sockets, or is profiled: `umask` and `inspector` have no names
 * of their own among `sys`.
 */
const LISTENS = [
  ...SOCKETS.filter((flag) => flag !== SOCKETS_SYS),
  "--allow-sys",
] as const;

/** Files of a state directory, and no network. */
const FILES = [...LOOK, "--allow-write"] as const;

/** Looks at a program by running it, and asks a process to start it (FFI). */
const UPGRADES = [...LOOK, "--allow-ffi", "--allow-run"] as const;

/** Starts servers and agents of its own. */
const SELF = [...LISTENS, "--allow-run"] as const;

/** Commands that need other than {@linkcode SOCKETS}. */
const SPECIAL: ReadonlyMap<string, readonly string[]> = new Map<
  string,
  readonly string[]
>(Object.entries({
  demo: SELF,
  server: LISTENS,
  agent: LISTENS,
  // How full a disk is has no name among `sys` either.
  doctor: LISTENS,
  token: FILES,
  node: FILES,
  ca: FILES,
  "egress-config": FILES,
  upgrade: UPGRADES,
  version: LOOK,
  help: LOOK,
}));

/**
 * A kubeconfig may name a program that gives credentials (exec plugins), and
 * workers are processes of the same program. Only with one of these flags, in
 * the command's words or in its configuration file, or one of these variables,
 * may a command run others.
 */
export const RUNS_PLUGINS = {
  /** As the shell matches names; `_` is as good as `-`. */
  flags: ["-*kubeconfig", "-*kube[-_]config", "-workers", "--workers"],
  variables: [
    "TUNNEL_WORKERS",
    "KUBECONFIG",
    "TUNNEL_KUBECONFIG",
    "TUNNEL_KUBE_CONFIG",
    "TUNNEL_DISCOVERY_KUBECONFIG",
    "TUNNEL_BOOTSTRAP_KUBECONFIG",
  ],
} as const;

/** Flags of `deno run` for a command; unknown ones only print help. */
export function permissionsOf(command: string): readonly string[] {
  return SPECIAL.get(command) ?? SOCKETS;
}

/** Whether a command may run programs once a kubeconfig is named. */
function mayRunPlugins(command: string): boolean {
  return SPECIAL.get(command) === undefined || SPECIAL.get(command) === LISTENS;
}

/** Commands of equal permissions. */
export interface PermissionGroup {
  readonly commands: readonly string[];
  readonly flags: readonly string[];
  readonly mayRunPlugins: boolean;
}

/** For a `case` of the shell. */
export function permissionGroups(): readonly PermissionGroup[] {
  const groups = new Map<readonly string[], string[]>();
  for (const [command, flags] of SPECIAL) {
    groups.set(flags, [...groups.get(flags) ?? [], command]);
  }
  return [...groups].map(([flags, commands]) => ({
    commands,
    flags,
    mayRunPlugins: commands.some(mayRunPlugins),
  }));
}

/** Of every command that is in no group. */
export const USUAL_PERMISSIONS: readonly string[] = SOCKETS;

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
    ...PERMISSIONS,
    Deno.mainModule,
  ];
}
