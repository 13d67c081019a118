/**
 * Free TCP ports below the ephemeral range, for peers that refuse "port 0" and
 * every port below 1024 or above 49151, as Konnectivity does.
 *
 * @module
 */

const FIRST = 20_000;
const LAST = 32_767;
const ATTEMPTS_MAX = 1_000;

const handedOut = new Set<number>();

/** A port that was free a moment ago and that was not handed out before. */
export function freePort(): number {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1));
    if (handedOut.has(port) || !isFree(port)) continue;
    handedOut.add(port);
    return port;
  }
  throw new Error(`Cannot find a free port: ${ATTEMPTS_MAX} tried`);
}

function isFree(port: number): boolean {
  try {
    // Every address: the peers' default is to listen on all of them.
    Deno.listen({ hostname: "0.0.0.0", port }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return false;
    throw error;
  }
}
