/**
 * What the C library is given and gives back: pointers into our memory, and error
 * numbers in the platform's codes and in the words that people know.
 *
 * Linux on x86-64 and arm64, which share these numbers
 * (`asm-generic/errno.h`).
 *
 * @module
 */

/** Numbers that are distinguished here; see errno(3). */
export const Errno = {
  EINTR: 4,
  EAGAIN: 11,
  EMFILE: 24,
  EISCONN: 106,
  ECONNREFUSED: 111,
  EALREADY: 114,
  EINPROGRESS: 115,
} as const;

/** Code and words by number. */
const NAMES: Readonly<Record<number, readonly [code: string, words: string]>> =
  {
    1: ["EPERM", "operation not permitted"],
    2: ["ENOENT", "no such file or directory"],
    4: ["EINTR", "interrupted system call"],
    9: ["EBADF", "bad file descriptor"],
    11: ["EAGAIN", "resource temporarily unavailable"],
    12: ["ENOMEM", "out of memory"],
    13: ["EACCES", "permission denied"],
    20: ["ENOTDIR", "not a directory"],
    22: ["EINVAL", "invalid argument"],
    23: ["ENFILE", "too many open files in system"],
    24: ["EMFILE", "too many open files"],
    30: ["EROFS", "read-only file system"],
    32: ["EPIPE", "broken pipe"],
    36: ["ENAMETOOLONG", "the path is too long for a socket"],
    40: ["ELOOP", "too many levels of symbolic links"],
    71: ["EPROTO", "protocol error"],
    91: ["EPROTOTYPE", "protocol wrong type for socket"],
    97: ["EAFNOSUPPORT", "address family not supported"],
    98: ["EADDRINUSE", "address already in use"],
    99: ["EADDRNOTAVAIL", "cannot assign requested address"],
    100: ["ENETDOWN", "network is down"],
    101: ["ENETUNREACH", "network is unreachable"],
    103: ["ECONNABORTED", "connection aborted"],
    104: ["ECONNRESET", "connection reset by peer"],
    105: ["ENOBUFS", "no buffer space available"],
    107: ["ENOTCONN", "not connected"],
    110: ["ETIMEDOUT", "connection timed out"],
    111: ["ECONNREFUSED", "connection refused"],
    112: ["EHOSTDOWN", "host is down"],
    113: ["EHOSTUNREACH", "no route to host"],
  };

/**
 * There is no room for one more descriptor that is waited for (epoll_ctl(2)), or
 * no descriptor left to wait with.
 */
export function cannotWait(): Error {
  return Object.assign(new Error("too many descriptors are waited for"), {
    code: "ENFILE",
  });
}

/** The error of a call that failed with `number`; its `code` is `E…`. */
export function systemError(number: number): Error {
  const [code, words] = NAMES[number] ??
    [`E${number}`, `system error ${number}`];
  return Object.assign(new Error(words), { code });
}

/**
 * The address of `memory`, which stays valid as long as there is a reference to
 * it.
 */
export function pointerTo(
  memory: Uint8Array<ArrayBuffer> | Uint32Array<ArrayBuffer>,
): number {
  // Addresses have 48 bits, so a number holds them.
  return Number(Deno.UnsafePointer.value(Deno.UnsafePointer.of(memory)));
}

/** Writes a pointer, or any number of 64 bits, at a word. */
export function pointTo(words: Uint32Array, at: number, pointer: number): void {
  words[at] = pointer; // Modulo 2^32.
  words[at + 1] = pointer / 2 ** 32;
}
