/**
 * Runs several test commands one after the other and adds up their totals.
 *
 * @module
 */

import { readTotal, type Tally } from "../../tests/support/watch/tally.ts";

export interface Step {
  readonly name: string;
  /** A task of `deno.json` and its arguments. */
  readonly task: readonly string[];
}

/**
 * Their output goes straight on. A step that fails without counting a failure,
 * or ends without a total, counts as one failure.
 */
export async function runSteps(
  steps: readonly Step[],
  tally: Tally,
): Promise<void> {
  for (const { name, task } of steps) {
    tally.note(`== ${name}`);
    const child = new Deno.Command(Deno.execPath(), {
      args: ["task", "--quiet", ...task],
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const printed = await passOn(child.stdout);
    const { code } = await child.status;
    const total = readTotal(printed);
    if (total !== undefined) tally.add(total);
    if (total === undefined || (code !== 0 && total.failed === 0)) {
      tally.fail(name, `ended with ${code} and ${total ?? "no total"}`);
    }
  }
}

async function passOn(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let all = "";
  for await (const chunk of stdout) {
    await Deno.stdout.write(chunk);
    all += decoder.decode(chunk, { stream: true });
  }
  return all;
}
