/**
 * Starts another program, which may outlive this process, with the C library's
 * `posix_spawn`.
 *
 * The platform could start one, too, but needs a permission that the packaged
 * program gives no server: every program that its kubeconfig names could be
 * run. A caller that may request a start here has the rights of this user
 * anyway (`upgrade.ts`).
 *
 * @module
 */

import { cText, openLibc } from "../libc/libc.ts";
import { socketCookie } from "../libc/socket_option.ts";
import { SOCK_STREAM, socketPair } from "../libc/sockets.ts";
import { pointerTo, pointTo, systemError } from "../libc/system_error.ts";

const SYMBOLS = {
  posix_spawn: {
    parameters: ["buffer", "buffer", "buffer", "buffer", "buffer", "buffer"],
    result: "i32",
  },
  posix_spawn_file_actions_init: { parameters: ["buffer"], result: "i32" },
  posix_spawn_file_actions_adddup2: {
    parameters: ["buffer", "i32", "i32"],
    result: "i32",
  },
  posix_spawn_file_actions_addopen: {
    parameters: ["buffer", "i32", "buffer", "i32", "u32"],
    result: "i32",
  },
  /** Of glibc 2.34. */
  posix_spawn_file_actions_addclosefrom_np: {
    parameters: ["buffer", "i32"],
    result: "i32",
    optional: true,
  },
  posix_spawn_file_actions_destroy: { parameters: ["buffer"], result: "i32" },
  posix_spawnattr_init: { parameters: ["buffer"], result: "i32" },
  posix_spawnattr_setflags: { parameters: ["buffer", "i16"], result: "i32" },
  posix_spawnattr_setsigdefault: {
    parameters: ["buffer", "buffer"],
    result: "i32",
  },
  posix_spawnattr_destroy: { parameters: ["buffer"], result: "i32" },
  waitpid: { parameters: ["i32", "buffer", "i32"], result: "i32" },
  kill: { parameters: ["i32", "i32"], result: "i32" },
  dup2: { parameters: ["i32", "i32"], result: "i32" },
} as const;

type Calls = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

/** More than both structures have with any C library (80 and 336 bytes). */
const STRUCTURE_BYTES = 512;

const SIGNAL_SET_BYTES = 128;
const SIGPIPE = 13;
const SIGKILL = 9;
/** POSIX_SPAWN_SETPGROUP: a group of its own, the default of the attributes. */
const SET_GROUP = 2;
/** POSIX_SPAWN_SETSIGDEF */
const SET_DEFAULT_SIGNALS = 4;
const WNOHANG = 1;
const F_SETFD = 2;
const FD_CLOEXEC = 1;
/** The platform makes its copies before anything else is opened. */
const COPY_MAX = 63;
const STDIN = 0;
const STDERR = 2;

let calls: Calls | undefined | "unavailable";

function openCalls(): Calls | undefined {
  calls ??= load() ?? "unavailable";
  return calls === "unavailable" ? undefined : calls;
}

function load(): Calls | undefined {
  if (openLibc() === undefined) return undefined;
  try {
    return Deno.dlopen("libc.so.6", SYMBOLS).symbols;
  } catch {
    return undefined; // Another C library.
  }
}

/** The program to start. */
export interface ProcessStart {
  readonly file: string;
  /** The words after the program's name. */
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** How a process has ended. */
export type ProcessEnd =
  | { readonly kind: "exit"; readonly code: number }
  | { readonly kind: "signal"; readonly number: number };

/** A process that was started here. */
export class SpawnedProcess {
  private constructor(
    private readonly calls: Calls,
    readonly pid: number,
    /** Its stderr can be read here; the caller closes it. */
    readonly stderr: number,
  ) {}

  /**
   * The new process inherits only stdout and `stderr`.
   *
   * @returns `undefined` without a C library.
   * @throws A system error with its `code`.
   */
  static start(start: ProcessStart): SpawnedProcess | undefined {
    const calls = openCalls();
    if (calls === undefined) return undefined;
    const [near, far] = socketPair(openLibc()!, SOCK_STREAM, true);
    const pid = spawn(calls, start, far);
    openLibc()!.close(far);
    if (typeof pid === "number") return new SpawnedProcess(calls, pid, near);
    openLibc()!.close(near);
    throw pid;
  }

  /** @returns `undefined`: it runs. To be called no more once it has ended. */
  end(): ProcessEnd | undefined {
    const status = new Int32Array(1);
    const found = this.calls.waitpid(this.pid, bytesOf(status), WNOHANG);
    if (found === 0) return undefined;
    const word = status[0]!;
    const number = word & 0x7f;
    return number === 0
      ? { kind: "exit", code: (word >> 8) & 0xff }
      : { kind: "signal", number };
  }

  /** With all processes that it has started and that stayed in its group. */
  kill(): void {
    this.calls.kill(-this.pid, SIGKILL);
  }
}

/**
 * Redirects stderr of this process, and of processes that it starts later: the
 * platform gives those its own copy, which it made at the start.
 */
export function becomeStderr(descriptor: number): void {
  const [calls, library] = [openCalls(), openLibc()];
  if (calls === undefined || library === undefined) return;
  const before = socketCookie(library, STDERR);
  for (
    let copy = STDERR + 1;
    copy <= COPY_MAX && before !== undefined;
    copy++
  ) {
    if (copy === descriptor || socketCookie(library, copy) !== before) continue;
    calls.dup2(descriptor, copy);
    library.fcntl(copy, F_SETFD, FD_CLOEXEC);
  }
  calls.dup2(descriptor, STDERR);
  library.close(descriptor);
}

function spawn(
  calls: Calls,
  { file, words, environment }: ProcessStart,
  stderr: number,
): number | Error {
  const [actions, attributes] = [structure(), structure()];
  calls.posix_spawn_file_actions_init(actions);
  calls.posix_spawnattr_init(attributes);
  try {
    const nowhere = cText("/dev/null");
    calls.posix_spawn_file_actions_addopen(actions, STDIN, nowhere, 0, 0);
    calls.posix_spawn_file_actions_adddup2(actions, stderr, STDERR);
    // Without this call, which older C libraries lack, a service manager's
    // descriptors are inherited.
    calls.posix_spawn_file_actions_addclosefrom_np?.(actions, STDERR + 1);
    // The platform ignores the signal, and an ignored signal is inherited.
    const defaults = new Uint8Array(SIGNAL_SET_BYTES);
    defaults[(SIGPIPE - 1) >> 3] = 1 << ((SIGPIPE - 1) & 7);
    calls.posix_spawnattr_setsigdefault(attributes, defaults);
    calls.posix_spawnattr_setflags(
      attributes,
      SET_GROUP | SET_DEFAULT_SIGNALS,
    );
    const list = new TextList([file, ...words]);
    const variables = new TextList(
      Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    );
    const pid = new Int32Array(1);
    const failed = calls.posix_spawn(
      bytesOf(pid),
      cText(file),
      actions,
      attributes,
      bytesOf(list.pointers),
      bytesOf(variables.pointers),
    );
    return failed === 0 ? pid[0]! : systemError(failed);
  } finally {
    calls.posix_spawn_file_actions_destroy(actions);
    calls.posix_spawnattr_destroy(attributes);
  }
}

/** A null-terminated list of C strings, which lives as long as this object. */
class TextList {
  readonly texts: readonly Uint8Array<ArrayBuffer>[];
  readonly pointers: Uint32Array<ArrayBuffer>;

  constructor(texts: readonly string[]) {
    this.texts = texts.map(cText);
    this.pointers = new Uint32Array(2 * (texts.length + 1));
    this.texts.forEach((text, index) =>
      pointTo(this.pointers, 2 * index, pointerTo(text))
    );
  }
}

function structure(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(STRUCTURE_BYTES);
}

function bytesOf(
  array: Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>,
): Uint8Array<ArrayBuffer> {
  return new Uint8Array(array.buffer);
}
