/**
 * Which flag to change when a port or a socket path could not be opened.
 *
 * @module
 */

import { ListenError } from "../../net/bind/listen_error.ts";
import { hostPort } from "../../proto/peer/host_port.ts";

/**
 * A flag, and the address or path that it stands for; where the address has a
 * flag of its own beside the port's, that one too.
 */
export type ListenFlag = readonly [
  flag: string,
  at: string | { readonly hostname: string; readonly port: number },
  addressFlag?: string,
];

/**
 * Starts something; a {@linkcode ListenError} that comes of it also names the
 * flags that hold its address.
 */
export async function namingFlags<Started>(
  flags: readonly ListenFlag[],
  start: () => Promise<Started> | Started,
): Promise<Started> {
  try {
    return await start();
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    const { problem, address, message } = error;
    const names = flags
      .filter(([, at]) => addressOf(at) === address)
      .map(([flag, , addressFlag]) =>
        problem === "bad-address" ? addressFlag ?? flag : flag
      );
    if (names.length === 0) throw error;
    const hint = `${message}; change ${names.join(" or ")}`;
    throw new ListenError(problem, address, hint, { cause: error });
  }
}

function addressOf(at: ListenFlag[1]): string {
  return typeof at === "string" ? at : hostPort(at.hostname, at.port);
}
