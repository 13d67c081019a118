/**
 * Whether something grows, told from samples that jump up and down.
 *
 * @module
 */

/** One sample. */
export interface Sample {
  readonly atMinutes: number;
  readonly value: number;
}

/**
 * The least of each `count` samples in a row: memory saws up to the next
 * collection of garbage, and only what is left behind one tells of a leak.
 */
export function lowest(samples: readonly Sample[], count: number): Sample[] {
  const least: Sample[] = [];
  for (let at = 0; at + count <= samples.length; at += count) {
    const some = samples.slice(at, at + count);
    least.push(some.reduce((a, b) => b.value < a.value ? b : a));
  }
  return least;
}

/**
 * Growth per minute: the median of the slopes between all pairs (Theil and
 * Sen), which some samples far off do not move.
 *
 * @returns 0 with fewer than two samples.
 */
export function slopePerMinute(samples: readonly Sample[]): number {
  const slopes: number[] = [];
  for (const [at, one] of samples.entries()) {
    for (const other of samples.slice(at + 1)) {
      const minutes = other.atMinutes - one.atMinutes;
      if (minutes > 0) slopes.push((other.value - one.value) / minutes);
    }
  }
  slopes.sort((a, b) => a - b);
  const middle = slopes.length >> 1;
  if (slopes.length === 0) return 0;
  return slopes.length % 2 === 1
    ? slopes[middle]!
    : (slopes[middle - 1]! + slopes[middle]!) / 2;
}
