/**
 * The shell script at the front of the packaged program: it puts the two files
 * behind it where they can be run, once, and runs them.
 *
 * What the runtime needs of a machine is looked at first: without it, it ends
 * with a page about a bug of its own.
 *
 * The files go into a folder that is the user's own and closed to others.
 * Anything else found under its name is refused: under /tmp anybody could have
 * put a program of theirs there. Each file appears by one rename, under a name
 * that contains its hash, so two first starts at once do not disturb each
 * other, and versions that share a runtime share the file.
 *
 * @module
 */

import type { Command } from "../cli/program/command.ts";
import {
  CHECKS_FILE,
  RELOADING,
  RIGHTS,
  type Rights,
  RUNS_PROGRAMS,
  V8_FLAGS_SMALL,
} from "../cli/program/rights.ts";

/** A file that the script carries, compressed with gzip. */
export interface CarriedFile {
  /** Of the uncompressed content, in hex; enough of it to be unique. */
  readonly hash: string;
  readonly bytes: number;
  readonly compressedBytes: number;
}

/** Modules, behind the code that puts them into a folder. */
export interface CarriedProgram extends CarriedFile {
  readonly codeBytes: number;
  /** Of the module that the program begins with, which is written last. */
  readonly entryBytes: number;
}

/** A system with a shell. */
export type Unix = "linux" | "macos";

/** In what the script differs from system to system. */
interface SystemWords {
  /** Looked at before the runtime begins; lines of the script. */
  readonly needs: string;
  /** What the runtime asks of a machine, for a sentence. */
  readonly wants: string;
  /** A condition: some process runs from the folder `$each`. */
  readonly isInUse: string;
  /** What else one may take. */
  readonly others: string;
}

export const AT_LEAST = `# at_least NUMBER LEAST: or unlimited
at_least() { case $1 in *[!0-9]* | "") ;; *) [ "$1" -ge "$2" ] ;; esac; }`;

/** With less, V8 is told to use little. */
const MEMORY_BYTES_SMALL = 96 * 1024 * 1024;

/**
 * The lowest limit of this group and of those above it, as
 * `net/libc/memory_limit.ts` finds it. V8 takes flags only when it begins.
 *
 * @param root Where `/proc` and `/sys` are; for tests.
 */
export function memoryFlags(root = ""): string {
  return `# Within a small limit of its control group V8 must use little.
[ ! -r ${root}/proc/self/cgroup ] || while IFS=: read -r _ each group; do
  case ",$each," in
  ,,) top=${root}/sys/fs/cgroup limit=memory.max ;;
  *,memory,*) top=${root}/sys/fs/cgroup/memory limit=memory.limit_in_bytes ;;
  *) continue ;;
  esac
  group=$top$group/
  while [ "$group" != "$top" ]; do
    group=\${group%/*}
    { read -r each <"$group/$limit"; } 2>/dev/null || continue
    at_least "$each" ${MEMORY_BYTES_SMALL} ||
      export DENO_V8_FLAGS="\${DENO_V8_FLAGS:-${V8_FLAGS_SMALL}}"
  done
done <${root}/proc/self/cgroup`;
}

const SYSTEMS: Readonly<Record<Unix, SystemWords>> = {
  linux: {
    needs: `
[ -L /proc/self/exe ] ||
  fail "Cannot start without /proc: mount it (mount -t proc proc /proc)"
${memoryFlags()}`,
    wants: "glibc",
    isInUse:
      `printf %s "$folder/$each/" | grep -q -s -F -f - /proc/[0-9]*/cmdline`,
    others: ", or take the .deb or the image, which unpack nothing",
  },
  macos: {
    needs: "",
    wants: "a macOS that Deno supports",
    // No other process is given the name, so none is found that only looks.
    isInUse: `case $(ps -A -ww -o args=) in *"/$each/"*) ;; *) false ;; esac`,
    others: "",
  },
};

/** What the script must know. */
export interface LauncherParts {
  readonly version: string;
  readonly system: Unix;
  /** As `uname -sm` says it. */
  readonly machine: string;
  readonly runtime: CarriedFile;
  readonly program: CarriedProgram;
  /** Flags of `deno run`, permissions excepted. */
  readonly runFlags: readonly string[];
  readonly commands: readonly Ruled[];
  /** Where both are already, as a package of the system has put them. */
  readonly installed?: string;
}

/**
 * With fewer descriptors the runtime begins, and may end soon with a page about
 * a bug of its own. It raises the soft limit by itself.
 */
const DESCRIPTORS_MIN = 48;

/** What the runtime reserves of addresses, and hardly uses: 36 GB and more. */
const ADDRESS_SPACE_KIB_MIN = 40_000_000;

/** What its rights are made of. */
type Ruled = Pick<Command, "name" | "rights">;

/** What the command in `$1` may do: what it says itself, see `rights.ts`. */
export function permissionCase(commands: readonly Ruled[]): string {
  const names = (wanted: Rights) =>
    commands.filter(({ rights }) => rights === wanted)
      .map(({ name }) => name).join("|");
  const { flags, variables } = RUNS_PROGRAMS;
  const named = variables.map((name) => `\${${name}:-}`).join("");
  const patterns = flags.flatMap((flag) => [flag, `${flag}=*`]).join("|");
  return `plugins="${named}"
# A plain file of flags, for reading a pipe would take what is in it.
look() { [ ! -f "$1" ] || ! grep -q -e 'kube[-_]\\{0,1\\}config' -e workers "$1" || plugins=yes; }
look "\${TUNNEL_CONFIG:-}"
before=
for word do
  case $word in
  ${patterns}) plugins=yes ;;
  -config=*|--config=*) look "\${word#*=}" ;;
  *) case $before in -config|--config) look "$word" ;; esac ;;
  esac
  before=$word
done
case \${1:-help} in
  ${names("programs")}) rights=programs ;;
  ${names("network")}) rights=\${plugins:+programs}; : "\${rights:=network}" ;;
  *) rights=look ;;
esac
case $rights in
  look) allow="${RIGHTS.look.join(" ")}" ;;
  network) allow="${RIGHTS.network.join(" ")}" ;;
  programs) allow="${RIGHTS.programs.join(" ")}" ;;
esac`;
}

/** The script; the runtime and then the program follow at once. */
export function launcherScript(parts: LauncherParts): string {
  // The script says where it ends itself, so its length depends on a number
  // within it: repeat until that settles (the second time, in practice).
  let length = 0;
  for (;;) {
    const script = scriptFor(parts, length);
    const settled = new TextEncoder().encode(script).length;
    if (settled === length) return script;
    length = settled;
  }
}

/** Ends with a sentence where the runtime would panic. */
function needs(system: Unix): string {
  return `# What the runtime cannot do without.
${AT_LEAST}
limit=$(ulimit -H -n 2>/dev/null) || limit=
at_least "$limit" ${DESCRIPTORS_MIN} ||
  fail "Cannot start with $limit descriptors: ${DESCRIPTORS_MIN} are needed, and one for each \\
connection; raise \\"ulimit -n\\""
limit=$(ulimit -v 2>/dev/null) || limit=
at_least "$limit" ${ADDRESS_SPACE_KIB_MIN} ||
  fail "Cannot start within $limit KiB of addresses (ulimit -v): the runtime \\
reserves ${ADDRESS_SPACE_KIB_MIN}, and uses few; limit memory by a cgroup (MemoryMax)"${
    SYSTEMS[system].needs
  }`;
}

/** Sets `folder`; later lines use `is_whole`, too. */
function folderChoice(hash: string, system: Unix): string {
  return `# Ours, closed to others, and no link: who else could have put files there?
is_private() {
  [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] && [ -w "$1" ] || return 1
  case $(ls -ld "$1") in drwx------*) ;; *) return 1 ;; esac
}
# Whether programs may be run there: it may be mounted noexec.
may_run() {
  printf '#!/bin/sh\\n' 2>/dev/null >"$1/.run.$$" && chmod 700 "$1/.run.$$" &&
    "$1/.run.$$" 2>/dev/null && rm -f "$1/.run.$$" && return 0
  rm -f "$1/.run.$$"
  return 1
}
# is_whole FILE BYTES
is_whole() {
  ls -ln "$1" 2>/dev/null | { read -r _ _ _ _ found _ && [ "$found" = "$2" ]; }
}
folder= why=
if [ -n "\${TUNNEL_CACHE_DIR:-}" ]; then set -- "$TUNNEL_CACHE_DIR" -- "$@"
else set -- "\${XDG_CACHE_HOME:+$XDG_CACHE_HOME/tunnel}" \\
  "\${HOME:+$HOME/.cache/tunnel}" "\${TMPDIR:-/tmp}/tunnel-$(id -u)" -- "$@"
fi
while [ "$1" != -- ]; do
  each=$1; shift
  [ -n "$each" ] && [ -z "$folder" ] || continue
  if ! mkdir -p "$each" 2>/dev/null; then why="$why$each cannot be made; "
  elif ! is_private "$each"; then why="$why$each is not mine alone (mode 0700); "
  elif [ ! -x "$each/runtime-${hash}/tunnel" ] && ! may_run "$each"; then
    why="$why$each cannot hold programs (noexec, or the disk is full); "
  else folder=$each
  fi
done
shift
[ -n "$folder" ] || fail "Cannot unpack: \${why}set TUNNEL_CACHE_DIR to a \\
folder of yours (mode 0700, not noexec)${SYSTEMS[system].others}"`;
}

/** Sets `program`, and puts both files into `folder` if they are not there. */
function unpacking(
  { runtime, program, system }: LauncherParts,
  length: number,
): string {
  const programAt = length + runtime.compressedBytes;
  return `${folderChoice(runtime.hash, system)}

# carried OFFSET LENGTH
carried() { tail -c +"$(($1 + 1))" "$0" | head -c "$2" | gzip -dc; }
# What is there already may be from another copy, which was whole.
[ -z "\${${CHECKS_FILE}:-}" ] ||
  { carried ${length} ${runtime.compressedBytes} &&
    carried ${programAt} ${program.compressedBytes}; } >/dev/null 2>&1 ||
  fail "Cannot run $0: it is damaged; copy it again"
# unpack TARGET OFFSET LENGTH BYTES
unpack() {
  is_whole "$1" "$4" && return 0
  trap 'rm -f "$folder/.new.$$"' EXIT
  carried "$2" "$3" >"$folder/.new.$$" && is_whole "$folder/.new.$$" "$4" ||
    fail "Cannot unpack into $folder: the disk is full or $0 is damaged"
  chmod 700 "$folder/.new.$$"
  mkdir -p "\${1%/*}"
  sync "$folder/.new.$$" 2>/dev/null || :
  case $1 in */runtime-*) "$folder/.new.$$" --version >/dev/null 2>&1 ||
    fail "Cannot run a program in $folder: it needs ${
    SYSTEMS[system].wants
  } and a folder that is \\
not mounted noexec; set TUNNEL_CACHE_DIR to another folder" ;; esac
  mv -f "$folder/.new.$$" "$1"
  trap - EXIT
}
unpack "$folder/runtime-${runtime.hash}/tunnel" ${length} ${runtime.compressedBytes} ${runtime.bytes}
export DENO_DIR="$folder/deno"
program="$folder/tunnel-${program.hash}"
is_whole "$program/main.js" ${program.entryBytes} || {
  unpack "$program.$$" ${programAt} ${program.compressedBytes} ${program.bytes}
  trap 'rm -f "$program.$$"' EXIT
  old=$(head -c ${program.codeBytes} "$program.$$" |
    "$folder/runtime-${runtime.hash}/tunnel" run --quiet --no-prompt --no-config --no-lock \\
      --allow-read="$folder" --allow-write="$folder" - "$program.$$" "$program") ||
    is_whole "$program/main.js" ${program.entryBytes} ||
    fail "Cannot unpack into $folder: the disk is full or $0 is damaged"
  # Of versions that nobody has started for long: if nothing runs from there.
  for each in $old; do
    ${SYSTEMS[system].isInUse} ||
      rm -rf "\${folder:?}/$each"
  done
  rm -f "$program.$$"
  trap - EXIT
}`;
}

/** The same where a package of the system has put them. */
function installedAt(folder: string, hash: string): string {
  return `folder=${folder}
program="$folder/tunnel-${hash}"
# For what the runtime remembers; without it, a start takes a little longer.
cache=\${TUNNEL_CACHE_DIR:-\${CACHE_DIRECTORY:-\${XDG_CACHE_HOME:-\${HOME:-/nonexistent}/.cache}/tunnel}}
export DENO_DIR="$cache/deno"`;
}

function scriptFor(parts: LauncherParts, length: number): string {
  const { version, system, machine, runtime, program, runFlags, installed } =
    parts;
  return `#!/bin/sh
# tunnel ${version} for ${machine}. ${
    installed === undefined ? CARRIES : STARTS
  }
set -eu
umask 077
fail() { echo "tunnel: $1" >&2; exit 1; }
[ "$(uname -sm)" = "${machine}" ] ||
  fail "Cannot run on $(uname -sm): this file is for ${machine}; take the other one"

${needs(system)}
# A working directory that was removed: neither this shell nor the runtime can name it.
[ -n "$(pwd -P 2>/dev/null)" ] || cd /
case \${1:-} in
# What reads files again on SIGHUP does not end by it before it can.
${RELOADING.join("|")}) trap '' HUP ;;
forward) ;;
# The runtime would write an answer to /dev/null, and report success.
*) { true 3>&1; } 2>/dev/null ||
  fail "Cannot write to standard output: it is closed" ;;
esac

${
    installed === undefined
      ? unpacking(parts, length)
      : installedAt(installed, program.hash)
  }
export DENO_NO_UPDATE_CHECK=1
# What \`tunnel install\` makes a service of.
case $0 in /*) _TUNNEL_FILE=$0 ;; *) _TUNNEL_FILE=$PWD/$0 ;; esac
export _TUNNEL_FILE

${permissionCase(parts.commands)}
# $allow is a list of words:
# shellcheck disable=SC2086
exec "$folder/runtime-${runtime.hash}/tunnel" run ${
    runFlags.join(" ")
  } $allow \\
  "$program/main.js" "$@"
`;
}

/** What the script is, in its own first lines. */
const CARRIES = `A script with two files behind it: the Deno
# runtime and the program. They are unpacked once, into $TUNNEL_CACHE_DIR or else
# the first usable of $XDG_CACHE_HOME/tunnel, ~/.cache/tunnel, /tmp/tunnel-UID.`;
const STARTS = "It starts the Deno runtime with the program.";
