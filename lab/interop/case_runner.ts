/**
 * Runs cases by their sentences, each with a time limit, and ends what they
 * leave. Knows no peer: what all cases share is the program's.
 *
 * @module
 */

import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { patience } from "../../tests/support/watch/patience.ts";
import { Tally } from "../../tests/support/watch/tally.ts";

/** By sentence. */
export type Cases<Context> = Readonly<
  Record<string, (context: Context) => Promise<void>>
>;

/** A program of cases. */
export interface CaseProgram<Context> {
  readonly cases: Cases<Context>;
  /** What all cases get; `stack` ends what they share. */
  start(workspace: Workspace, stack: AsyncDisposableStack): Promise<Context>;
  /** For one case. */
  readonly timeoutMs: number;
  /** One after the other unless given. */
  readonly atOnce?: number;
  /** Picks cases by their sentence; the first argument unless given. */
  readonly pattern?: RegExp;
}

/**
 * Runs those whose sentence fits the pattern.
 *
 * @returns The exit status, after the total.
 */
export async function runCases<Context>(
  program: CaseProgram<Context>,
): Promise<number> {
  const { cases, timeoutMs, atOnce = 1 } = program;
  const { pattern = new RegExp(Deno.args[0] ?? ".") } = program;
  return await counted("the peer starts", async (tally, workspace) => {
    await using stack = new AsyncDisposableStack();
    const context = await program.start(workspace, stack);
    // All take from one list, in which they see what others have taken.
    const waiting = Object.entries(cases)
      .filter(([sentence]) => pattern.test(sentence)).values();
    const takeTurns = async () => {
      for (const [sentence, check] of waiting) {
        const run = () => within(timeoutMs, check(context));
        await tally.run(sentence, run);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, takeTurns));
  });
}

/**
 * Runs what is counted, and ends what it leaves; logs stay when it fails.
 *
 * @param what Has failed when `run` throws.
 * @returns The exit status, after the total.
 */
export async function counted(
  what: string,
  run: (tally: Tally, workspace: Workspace) => Promise<void>,
): Promise<number> {
  const tally = new Tally();
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  try {
    await run(tally, workspace);
  } catch (error) {
    tally.fail(what, error);
  }
  await killAllChildren();
  if (tally.failed === 0) await workspace.remove();
  else tally.note(`logs are in ${workspace.folder}`);
  return tally.end();
}

/** @throws {Error} When it takes longer; a busy machine has more time. */
export async function within(
  timeoutMs: number,
  checking: Promise<void>,
): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`not done after ${timeoutMs} ms`)),
    patience(timeoutMs),
  );
  try {
    await Promise.race([checking, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
