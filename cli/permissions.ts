/**
 * What each command of the packaged program asks the platform for, and why: the
 * launcher gives no command more. From source all run with
 * {@linkcode PERMISSIONS} of `self_command.ts`, which is the union.
 *
 * Reading and the environment are open to all: which files and variables are
 * read is what flags say. Nothing is asked for at run time (`--no-prompt`).
 *
 * @module
 */

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
  token: FILES,
  node: FILES,
  ca: FILES,
  "egress-config": FILES,
  version: LOOK,
  help: LOOK,
}));

/**
 * A kubeconfig may name a program that gives credentials (exec plugins). Only
 * with one of these flags, in the command's words or in its configuration file,
 * or one of these variables, may a command run others.
 */
export const RUNS_PLUGINS = {
  /** As the shell matches names; `_` is as good as `-`. */
  flags: ["-*kubeconfig", "-*kube[-_]config"],
  variables: [
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
