/**
 * How long tests wait before they give up, on the machine that they run on, as
 * busy as it is now.
 *
 * Deadlines are written for two idle cores. What runs processes is given them
 * times a slowness that is measured when it is asked for.
 *
 * @module
 */

/** Before a test puts a clock of its own in their place. */
const { setTimeout, clearTimeout } = globalThis;
const nowMs = () => performance.now();

/** What {@linkcode work} takes where the deadlines were written. */
const REFERENCE_MS = 25;
/** So much that a share of a core shows, which is dealt in slices of some ms. */
const ROUNDS = 12_000_000;
/** Beyond it a failure is better than a wait. */
const MOST = 12;
/** As long as this a measurement is good. */
const FRESH_MS = 5_000;
const POLL_MS = 10;

let measured = { slowness: 1, atMs: -Infinity };

/** Nothing but computing, which no compiler can leave out. */
function work(rounds: number): number {
  let state = 1;
  for (let round = 0; round < rounds; round++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
  }
  return state;
}

/**
 * How many times longer than on idle cores computing has taken here at its
 * slowest: 1 to 12. Takes some milliseconds, at most every five seconds.
 */
export function slowness(): number {
  if (nowMs() - measured.atMs < FRESH_MS) return measured.slowness;
  // First for the compiler, which would be measured otherwise.
  if (measured.atMs === -Infinity) work(ROUNDS / 10);
  const beganMs = nowMs();
  work(ROUNDS);
  const times = (nowMs() - beganMs) / REFERENCE_MS;
  // A busy machine has idle moments, and in one of them it may be asked.
  const slowest = Math.max(times, measured.slowness);
  measured = { slowness: Math.min(slowest, MOST), atMs: nowMs() };
  return measured.slowness;
}

/** What `ms` on idle cores are here and now. */
export function patience(ms: number): number {
  return ms * slowness();
}

/**
 * Calls `act` when `ms` on idle cores are over, as slow as it has become here
 * by then: what was measured in a quiet moment says nothing of a load that came
 * behind it.
 *
 * @returns What calls it off.
 */
export function whenLate(ms: number, act: () => void): () => void {
  const startMs = nowMs();
  const look = () => {
    const leftMs = patience(ms) - (nowMs() - startMs);
    if (leftMs <= 0) act();
    else timer = setTimeout(look, leftMs);
  };
  let timer = setTimeout(look, ms);
  return () => clearTimeout(timer);
}

/**
 * Waits for something that nobody announces, such as a gauge of another part.
 *
 * @param timeoutMs On idle cores.
 * @throws {Error} When it does not come about in time.
 */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = 10_000,
): Promise<void> {
  const startMs = nowMs();
  // Only who is late asks how slow it is here: it costs nothing to be in time.
  while (!await holds()) {
    const waitedMs = nowMs() - startMs;
    if (waitedMs > timeoutMs && waitedMs > patience(timeoutMs)) {
      throw new Error(
        `Never came about in ${Math.round(waitedMs)} ms: ${what}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
