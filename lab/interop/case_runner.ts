// deno-lint-ignore-file no-console -- it prints where logs are.
/**
 * Runs cases by their sentences before one real peer, each with a time limit,
 * and ends what they leave. Knows no peer.
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
export interface CaseProgram<Peer extends AsyncDisposable> {
  readonly cases: Cases<
    { readonly workspace: Workspace; readonly cluster: Peer }
  >;
  start(workspace: Workspace): Promise<Peer>;
  /** For one case. */
  readonly timeoutMs: number;
}

/**
 * Runs those whose sentence fits the first argument, one after the other.
 *
 * @returns The exit status, after the total.
 */
export async function runCases<Peer extends AsyncDisposable>(
  { cases, start, timeoutMs }: CaseProgram<Peer>,
): Promise<number> {
  const pattern = new RegExp(Deno.args[0] ?? ".");
  const tally = new Tally();
  endChildrenOnSignals(() => Promise.resolve());
  const workspace = await Workspace.make();
  try {
    await using cluster = await start(workspace);
    for (const [sentence, check] of Object.entries(cases)) {
      if (!pattern.test(sentence)) continue;
      const run = () => within(timeoutMs, check({ cluster, workspace }));
      await tally.run(sentence, run);
    }
  } catch (error) {
    tally.fail("the peer starts", error);
  }
  await killAllChildren();
  if (tally.failed === 0) await workspace.remove();
  else console.log(`logs are in ${workspace.folder}`);
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
