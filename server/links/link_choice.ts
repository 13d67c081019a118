/**
 * Which of an agent's links a new conduit goes to.
 *
 * A conduit stays where it was dialed, and at that time nobody knows what it
 * will be used for. Whoever shares a link with a bulk conduit waits behind what
 * that one has queued, and for every lost packet of it. So a link counts as
 *
 * - `busy` while conduits move in bulk there,
 * - `open` for a while after a dial, because what was dialed may turn out so,
 * - `calm` otherwise: what lives there is interactive, or idle.
 *
 * Dials go to open links as long as one calm link is left, and to that one only
 * when all others are busy. With two links a burst of downloads shares one and
 * what comes later has the other; with more links bulk is spread over all but
 * one. When all are busy there is nothing left to keep: the least busy has it.
 *
 * @module
 */

/** How long after a dial it is not known what its conduit is used for. */
export const OPEN_MS = 1_000;

/** A link whose round trips are so much longer than another's is left alone. */
const SLOW_RATIO = 2;

/** Below this difference it is chance. */
const SLOW_MS = 50;

/** What is known of a link. */
export interface LinkSight {
  readonly bulkConduits: number;
  /** Newest round trip; `undefined` when none was measured. */
  readonly roundTripMs: number | undefined;
  /** Conduits and pending dials. */
  readonly load: number;
  /** When a dial was last sent there; `-Infinity` for never. */
  readonly dialedMs: number;
}

/**
 * Chooses among links that serve the same targets.
 *
 * @param links At least one. Of equals the first is chosen.
 */
export function chooseLink<L extends LinkSight>(
  links: readonly L[],
  nowMs: number,
): L {
  const busy: L[] = [];
  const open: L[] = [];
  const calm: L[] = [];
  for (const link of links) {
    if (link.bulkConduits > 0) busy.push(link);
    else if (nowMs - link.dialedMs < OPEN_MS) open.push(link);
    else calm.push(link);
  }
  if (calm.length > 1 || (calm.length === 1 && open.length === 0)) {
    return calm.reduce(lessLoaded);
  }
  if (open.length > 0) return open.reduce(lessLoaded);
  return busy.reduce(lessBusy);
}

function lessLoaded<L extends LinkSight>(a: L, b: L): L {
  return b.load < a.load ? b : a;
}

/** Both move bulk, so both have fresh round trips, queues included. */
function lessBusy<L extends LinkSight>(a: L, b: L): L {
  if (isSlowerThan(a, b)) return b;
  if (isSlowerThan(b, a)) return a;
  if (a.bulkConduits !== b.bulkConduits) {
    return b.bulkConduits < a.bulkConduits ? b : a;
  }
  return lessLoaded(a, b);
}

function isSlowerThan(a: LinkSight, b: LinkSight): boolean {
  const [aMs, bMs] = [a.roundTripMs, b.roundTripMs];
  if (aMs === undefined || bMs === undefined) return false;
  return aMs > bMs * SLOW_RATIO && aMs - bMs > SLOW_MS;
}
