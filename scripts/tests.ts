/**
 * Which tests there are, what may run beside what, and what `deno test` says.
 *
 * @module
 */

/**
 * `fast`: nothing but this process, and no time that passes. `slow`: processes,
 * and real time. `alone`: slow, and disturbed by whatever runs beside it.
 */
export type Kind = "fast" | "slow" | "alone";

/** Files and folders of what needs the whole machine, or a part of it, and why. */
const ALONE: Readonly<Record<string, string>> = {
  "tests/doctor/": "doctor gives itself four seconds",
  "net/libc/memory_relief_slow_test.ts": "looks at memory",
  "platform/time/system_timers_slow_test.ts": "looks at clocks",
  "proto/xds/request_decoder_slow_test.ts": "looks at memory",
  "server/peers/members_by_leases_slow_test.ts": "heartbeats of 400 ms",
  "tests/scenarios/bench_slow_test.ts": "looks at speed",
  "tests/scenarios/kubernetes_agent_slow_test.ts": "certificates of 3 s",
  "tests/scenarios/many_sockets_slow_test.ts": "counts own descriptors",
  "tests/scenarios/relay_stall_slow_test.ts":
    "one stands still for 10 s at most",
};

/** What takes longest begins first, so that the end waits for nobody. */
const LONGEST: readonly string[] = [
  "mistakes/mistakes",
  "scenarios/client_failover",
  "scenarios/forwarding",
  "scenarios/authority_change",
  "scenarios/copied_identity",
  "scenarios/upgrade",
  "scenarios/rolling_upgrade",
  "scenarios/workers",
  "scenarios/workers_trouble",
  "scenarios/processes",
  "scenarios/ask",
  "scenarios/network_changes",
  "scenarios/peers",
].map((name) => `tests/${name}_slow_test.ts`);

/** The files that are named here. */
export const NAMED = [...Object.keys(ALONE), ...LONGEST];

/** `files`, those that take longest before the others. */
export function inOrder(files: readonly string[]): string[] {
  const rank = (file: string) => (LONGEST.indexOf(file) + 1) || Infinity;
  return files.toSorted((one, other) => {
    const [before, behind] = [rank(one), rank(other)];
    return before === behind ? 0 : before - behind;
  });
}

/** The kind of the test at `path`, from the root on; `undefined` if it is none. */
export function kindOf(path: string): Kind | undefined {
  if (!path.endsWith("_test.ts")) return undefined;
  if (!path.endsWith("_slow_test.ts")) return "fast";
  const isAlone = Object.keys(ALONE).some((place) => path.startsWith(place));
  return isAlone ? "alone" : "slow";
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
