/**
 * Which of two programs of ours is the older one, by what each says that it is.
 *
 * @module
 */

/** Such as `0.1.0` of `tunnel/0.1.0`; `undefined`: it is none of ours. */
export function versionIn(software: string): string | undefined {
  return /^tunnel\/(\d{1,9}\.\d{1,9}\.\d{1,9})/.exec(software)?.[1];
}

/**
 * Negative: `one` is older than `other`. Pre-releases count as their release.
 *
 * @param one Major, minor and patch, with a point between them.
 */
export function compareVersions(one: string, other: string): number {
  const others = partsOf(other);
  for (const [index, part] of partsOf(one).entries()) {
    const difference = part - (others[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function partsOf(version: string): readonly number[] {
  return version.split(".", 3).map((part) => parseInt(part) || 0);
}
