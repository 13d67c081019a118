/**
 * A right that the program did not give itself. The platform tells whoever
 * starts it to add a flag; our users start a file that gives its own flags, so to
 * them it is a slip of ours. Libraries leave the platform's words as they are.
 *
 * @module
 */

/** The platform's words; an error that wraps them rarely keeps more of it. */
const WORDS =
  /Requires ([a-z]+) access(?: to( .{1,300}?))?, run again with the --allow-[a-z]+ flag/g;

/** Of files that need all rights: the kernel's. */
const ALL = "all";

/** Whether a sentence says that a right is missing that the program could have. */
export function tellsMissingRight(text: string): boolean {
  return text.matchAll(WORDS).some(([, right]) => right !== ALL);
}

/** The sentence with our words for that, and otherwise as it is. */
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
