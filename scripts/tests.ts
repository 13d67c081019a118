/**
 * Which tests are fast, how they are grouped, and what `deno test` says.
 *
 * @module
 */

/**
 * Whether `path`, from the root on, belongs to `task ok`: slow tests and whole
 * scenarios do not.
 */
export function isFastTest(path: string): boolean {
  return path.endsWith("_test.ts") && !path.endsWith("_slow_test.ts") &&
    !path.startsWith("tests/scenarios/");
}

/** Deals `files` out like cards, so that neighbours (equally slow) part. */
export function groupsOf(
  files: readonly string[],
  groups: number,
): string[][] {
  const dealt = Array.from({ length: groups }, (): string[] => []);
  files.forEach((file, index) => dealt[index % groups]!.push(file));
  return dealt.filter((group) => group.length > 0);
}

const TOTAL =
  /^(?:ok|FAILED) \| (\d+) passed(?: \([^|]*\))? \| (\d+) failed(?: \([^|]*\))?(?: \| (\d+) ignored)?/gm;

/** The summary of `deno test` without colours; `undefined` if it has none. */
export function readTestTotal(
  output: string,
): { passed: number; failed: number; skipped: number } | undefined {
  const last = [...output.matchAll(TOTAL)].at(-1);
  if (last === undefined) return undefined;
  const [passed, failed, skipped] = last.slice(1).map((n) => Number(n ?? 0));
  return { passed: passed!, failed: failed!, skipped: skipped! };
}

/** What is worth reading in the output of `deno test` that failed. */
export function withoutPasses(output: string): string {
  return output.split("\n")
    .filter((line) => !/ \.\.\. ok \(\S+\)$/.test(line))
    .join("\n").replaceAll(/\n{3,}/g, "\n\n").trimEnd();
}
