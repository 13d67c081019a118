/**
 * `tunnel bench` run in this process, with a terminal that a test holds.
 *
 * @module
 */

import { benchCommand } from "../../../cli/bench/command.ts";
import type { Ran } from "../program/command_line.ts";

/** How {@linkcode bench} is to be run. */
export interface BenchConfig {
  readonly isTerminal?: boolean;
  /** Interrupt it as soon as it has printed what matches. */
  readonly interruptAt?: RegExp;
}

/** Runs `tunnel bench` with `flags`. */
export async function bench(
  flags: readonly string[],
  config: BenchConfig = {},
): Promise<Ran> {
  let output = "";
  let errors = "";
  const listeners = new Set<() => void>();
  const printed = () => {
    const { interruptAt } = config;
    if (interruptAt === undefined || !interruptAt.test(output + errors)) return;
    for (const listener of listeners) listener();
  };
  const command = benchCommand({
    isTerminal: () => config.isTerminal ?? false,
    signals: {
      addSignalListener: (_signal, listener) => void listeners.add(listener),
      removeSignalListener: (_signal, listener) =>
        void listeners.delete(listener),
    },
  });
  const code = await command.run({
    argv: flags,
    environment: () => undefined,
    readFile: (path) => Deno.readTextFileSync(path),
    print: (text) => {
      output += text;
      printed();
    },
    printError: (text) => {
      errors += text;
      printed();
    },
  });
  return { code, output, errors };
}
