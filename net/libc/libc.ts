/**
 * Calls of the C library that the platform does not have.
 *
 * Linux with glibc, and the permission for FFI; elsewhere `openLibc` gives
 * none, and its callers do without.
 *
 * @module
 */

/**
 * So many descriptors in a row that are no such socket end a scan. The kernel
 * gives out the lowest that is free, so they lie close together; one more try
 * costs a fraction of a microsecond.
 */
export const DESCRIPTOR_GAP_MAX = 1024;

const SYMBOLS = {
  getsockname: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  getpeername: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  getsockopt: {
    parameters: ["i32", "i32", "i32", "buffer", "buffer"],
    result: "i32",
  },
  setsockopt: {
    parameters: ["i32", "i32", "i32", "buffer", "u32"],
    result: "i32",
  },
  getrlimit: { parameters: ["i32", "buffer"], result: "i32" },
  getpwuid: { parameters: ["u32"], result: "pointer" },
  getgrouplist: {
    parameters: ["pointer", "u32", "buffer", "buffer"],
    result: "i32",
  },
  setgroups: { parameters: ["usize", "pointer"], result: "i32" },
  setgid: { parameters: ["u32"], result: "i32" },
  setuid: { parameters: ["u32"], result: "i32" },
  clock_gettime: { parameters: ["i32", "buffer"], result: "i32" },
  malloc_trim: { parameters: ["usize"], result: "i32" },
  connect: { parameters: ["i32", "buffer", "u32"], result: "i32" },
  dup: { parameters: ["i32"], result: "i32" },
  fcntl: { parameters: ["i32", "i32", "i32"], result: "i32" },
  fchmod: { parameters: ["i32", "u32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  recvmmsg: {
    parameters: ["i32", "buffer", "u32", "i32", "pointer"],
    result: "i32",
  },
  socket: { parameters: ["i32", "i32", "i32"], result: "i32" },
  socketpair: { parameters: ["i32", "i32", "i32", "buffer"], result: "i32" },
  epoll_create1: { parameters: ["i32"], result: "i32" },
  epoll_ctl: { parameters: ["i32", "i32", "i32", "buffer"], result: "i32" },
  epoll_wait: { parameters: ["i32", "buffer", "i32", "i32"], result: "i32" },
  epoll_wait_elsewhere: {
    name: "epoll_wait",
    parameters: ["i32", "buffer", "i32", "i32"],
    result: "i32",
    nonblocking: true,
  },
  poll: { parameters: ["buffer", "usize", "i32"], result: "i32" },
  eventfd: { parameters: ["u32", "i32"], result: "i32" },
  eventfd_read: { parameters: ["i32", "buffer"], result: "i32" },
  eventfd_write: { parameters: ["i32", "u64"], result: "i32" },
  __errno_location: { parameters: [], result: "pointer" },
  sendmmsg: { parameters: ["i32", "buffer", "u32", "i32"], result: "i32" },
  bind: { parameters: ["i32", "buffer", "u32"], result: "i32" },
  listen: { parameters: ["i32", "i32"], result: "i32" },
  accept4: { parameters: ["i32", "buffer", "buffer", "i32"], result: "i32" },
  recv: { parameters: ["i32", "buffer", "usize", "i32"], result: "i32" },
  send: { parameters: ["i32", "buffer", "usize", "i32"], result: "i32" },
  sendmsg: { parameters: ["i32", "buffer", "i32"], result: "i64" },
  recvmsg: { parameters: ["i32", "buffer", "i32"], result: "i64" },
  shutdown: { parameters: ["i32", "i32"], result: "i32" },
  open: { parameters: ["buffer", "i32"], result: "i32" },
  read: { parameters: ["i32", "buffer", "usize"], result: "i64" },
  readlink: { parameters: ["buffer", "buffer", "usize"], result: "i64" },
  opendir: { parameters: ["buffer"], result: "pointer" },
  readdir: { parameters: ["pointer"], result: "pointer" },
  closedir: { parameters: ["pointer"], result: "i32" },
  pipe2: { parameters: ["buffer", "i32"], result: "i32" },
  mmap: {
    parameters: ["pointer", "usize", "i32", "i32", "i32", "i64"],
    result: "pointer",
  },
  madvise: { parameters: ["pointer", "usize", "i32"], result: "i32" },
  munmap: { parameters: ["pointer", "usize"], result: "i32" },
  // The C library has no names for these, or not everywhere.
  epoll_pwait2: {
    name: "syscall",
    parameters: ["i64", "i32", "buffer", "i32", "buffer", "pointer", "usize"],
    result: "i64",
  },
  fstat: {
    name: "syscall",
    parameters: ["i64", "i32", "buffer"],
    result: "i64",
  },
  io_uring_setup: {
    name: "syscall",
    parameters: ["i64", "u32", "buffer"],
    result: "i64",
  },
  io_uring_enter: {
    name: "syscall",
    parameters: ["i64", "i64", "i64", "i64", "i64", "i64", "i64"],
    result: "i64",
  },
} as const;

/** The functions there are. */
export type LibC = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

let libc: LibC | undefined | "unavailable";

/** The C library, opened at the first call. */
export function openLibc(): LibC | undefined {
  libc ??= load() ?? "unavailable";
  return libc === "unavailable" ? undefined : libc;
}

let lastErrorAt: Int32Array | undefined;

/** Why the call just before failed, in the system's numbers. */
export function lastError(library: LibC): number {
  return (lastErrorAt ?? findLastError(library))[0]!;
}

/** Each thread has its own place, which does not move. */
function findLastError(library: LibC): Int32Array {
  return lastErrorAt = new Int32Array(
    Deno.UnsafePointerView.getArrayBuffer(library.__errno_location()!, 4),
  );
}

function load(): LibC | undefined {
  if (Deno.build.os !== "linux") return undefined;
  // Queried first, because an attempt without the permission would prompt.
  if (Deno.permissions.querySync({ name: "ffi" }).state !== "granted") {
    return undefined;
  }
  try {
    const { symbols } = Deno.dlopen("libc.so.6", SYMBOLS);
    // Found before anything fails: to look for it may change errno.
    findLastError(symbols);
    return symbols;
  } catch {
    return undefined; // Another C library.
  }
}

/** A text in C's form. */
export function cText(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${text}\0`);
}
