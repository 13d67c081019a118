/**
 * A permission that the program did not give itself. The platform advises to
 * add a flag; our users start a file that has its own flags, so for them it is
 * an error of ours. The library leaves the platform's words as they are.
 *
 * @module
 */

/** The platform's words; an error that wraps them rarely keeps more of it. */
const WORDS =
  /Requires ([a-z]+) access(?: to( .{1,300}?))?, run again with the --allow-[a-z]+ flag/g;

/** Files that need all permissions: the kernel's. */
const ALL = "all";

/** Whether a sentence says that a right is missing that the program could have. */
export function tellsMissingRight(text: string): boolean {
  return text.matchAll(WORDS).some(([, right]) => right !== ALL);
}

/**
 * The sentence in our words for a missing permission; other sentences are
 * unchanged.
 */
export function asFaultOfOurs(text: string): string {
  return text.replace(
    WORDS,
    (_, right: string, what = "") =>
      right === ALL
        ? "folders of the kernel (/proc, /sys, /dev) are not for programs; " +
          "name another one"
        : "the program did not give itself a right that it needs " +
          `(${right}${what}); please report it`,
  );
}
