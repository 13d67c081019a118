/**
 * Why a port or socket path could not be opened.
 *
 * @module
 */

import { codeOf, messageOf } from "../../platform/errors/error_code.ts";

/** Problems for which a caller has advice. */
export type ListenProblem =
  | "in-use"
  | "permission"
  | "bad-address"
  | "no-descriptors"
  | "other";

/** A listener that could not be opened. The caller adds which flag to change. */
export class ListenError extends Error {
  /** Distinguishes it from other errors, also by its text. */
  override readonly name = "ListenError";

  /** See `tunnel explain`. */
  get tunnelCode(): string {
    return this.problem === "no-descriptors" ? "TUN513" : "TUN904";
  }

  /** Made by {@linkcode listenError} for most. */
  constructor(
    /** The system error's code, for callers that decide by it. */
    readonly problem: ListenProblem,
    /** `host:port` or a path. */
    readonly address: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const PROBLEMS: ReadonlyMap<string, [ListenProblem, string]> = new Map<
  string,
  [ListenProblem, string]
>(Object.entries({
  EADDRINUSE: ["in-use", "something listens there already"],
  EACCES: [
    "permission",
    "permission denied; ports below 1024 need a privilege",
  ],
  EPERM: ["permission", "permission denied"],
  EADDRNOTAVAIL: ["bad-address", "this machine has no such address"],
  ENOENT: ["bad-address", "there is no such directory"],
  ENOTFOUND: ["bad-address", "there is no such host"],
  EINVAL: ["bad-address", "the address is not valid"],
  EMFILE: ["no-descriptors", "too many open files"],
  ENFILE: ["no-descriptors", "too many open files in the system"],
}));

/** `sun_path` of unix(7) has 108 bytes, of which a zero ends the path. */
export const SOCKET_PATH_BYTES_MAX = 107;

function pathProblem(address: string): [ListenProblem, string] | undefined {
  if (!address.startsWith("/")) return undefined;
  const { length } = new TextEncoder().encode(address);
  return length <= SOCKET_PATH_BYTES_MAX ? undefined : [
    "bad-address",
    `its path has ${length} bytes, and a socket's may have ` +
    `${SOCKET_PATH_BYTES_MAX}; give a shorter one`,
  ];
}

/** Makes a {@linkcode ListenError} from an error of the platform. */
export function listenError(address: string, error: unknown): ListenError {
  if (error instanceof ListenError) return error;
  const text = messageOf(error);
  const [problem, words] = pathProblem(address) ??
    PROBLEMS.get(codeOf(error)) ??
    // The platform gives no code for a name that it cannot resolve.
    (/failed to lookup address/.test(text)
      ? PROBLEMS.get("ENOTFOUND")!
      : ["other", text]);
  return new ListenError(
    problem,
    address,
    `Cannot listen on ${address}: ${words}`,
    { cause: error },
  );
}
