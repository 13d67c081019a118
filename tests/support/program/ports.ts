/**
 * Free TCP ports below the ephemeral range, for peers that refuse "port 0" and
 * every port below 1024 or above 49151, as Konnectivity does.
 *
 * Each process takes whole blocks of them, and holds a lock of each block's file
 * until it ends: what was free a moment ago is handed out by one process only.
 *
 * @module
 */

const FIRST = 20_000;
const LAST = 32_767;
const BLOCK_PORTS = 128;
const BLOCKS = Math.floor((LAST - FIRST + 1) / BLOCK_PORTS);

/** Where the machine's test processes meet, whatever each has as `TMPDIR`. */
const LOCKS = "/tmp/tunnel-test-ports";

/** Ports of the blocks that are ours, and that were not handed out yet. */
const ours: number[] = takeBlock();

/** A port that was free a moment ago, and that nobody else is handed out. */
export function freePort(): number {
  for (;;) {
    if (ours.length === 0) ours.push(...takeBlock());
    const port = ours.pop()!;
    if (isFree(port)) return port;
  }
}

/** In an order of chance: who ran before may still use the first ones. */
function takeBlock(): number[] {
  Deno.mkdirSync(LOCKS, { recursive: true });
  const start = Math.floor(Math.random() * BLOCKS);
  for (let tried = 0; tried < BLOCKS; tried++) {
    const block = (start + tried) % BLOCKS;
    if (!isTaken(`${LOCKS}/${block}`)) {
      const first = FIRST + block * BLOCK_PORTS;
      return Array.from({ length: BLOCK_PORTS }, (_, at) => first + at);
    }
  }
  throw new Error(
    `Cannot take a block of ports: all ${BLOCKS} of ${LOCKS} are locked`,
  );
}

/** Locks the file until this process ends, unless another one has locked it. */
function isTaken(path: string): boolean {
  const file = Deno.openSync(path, { create: true, write: true });
  if (file.tryLockSync(true)) return false;
  file.close();
  return true;
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
