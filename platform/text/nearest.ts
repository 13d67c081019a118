/**
 * "Did you mean …?"
 *
 * @module
 */

/**
 * Limit on comparisons of letters: five thousand names of 250 letters would
 * block the event loop for seconds, and the caller chooses the text. It is
 * enough for five thousand names of twenty letters.
 */
export const COMPARISONS_MAX = 2_000_000;

/** @returns `; did you mean X?`, or an empty text when no candidate is near. */
export function didYouMean(
  seen: string,
  candidates: Iterable<string>,
  dashes = "",
): string {
  const near = nearest(seen, candidates);
  return near === undefined ? "" : `; did you mean ${dashes}${near}?`;
}

/**
 * The candidate that the user most likely meant.
 *
 * @returns `undefined` when no candidate is near: more than a third differs.
 */
export function nearest(
  seen: string,
  candidates: Iterable<string>,
): string | undefined {
  let best: string | undefined;
  let bestDistance = Infinity;
  let left = COMPARISONS_MAX;
  for (const candidate of candidates) {
    if (isFar(seen.length, candidate.length)) continue;
    left -= seen.length * candidate.length;
    if (left < 0) break;
    const distance = editDistance(seen.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  const longer = Math.max(seen.length, best?.length ?? 0);
  const isNear = bestDistance <= Math.max(1, longer / 3);
  return isNear && bestDistance < longer ? best : undefined;
}

/**
 * Whether lengths alone exclude a match, so that no comparison is needed: a
 * peer's name may have any number of letters.
 */
function isFar(one: number, other: number): boolean {
  return Math.abs(one - other) > Math.max(1, Math.max(one, other) / 3);
}

/**
 * Insertions, deletions, substitutions and swaps of neighbours from `a` to `b`
 * (the restricted distance of Damerau and Levenshtein).
 */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const choices = [
        last[column - 1]! + (isSame ? 0 : 1),
        last[column]! + 1,
        current[column - 1]! + 1,
      ];
      const isSwap = row > 1 && column > 1 &&
        a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (isSwap) {
        choices.push(beforeLast[column - 2]! + 1);
      }
      current.push(Math.min(...choices));
    }
    [beforeLast, last] = [last, current];
  }
  return last[b.length]!;
}
