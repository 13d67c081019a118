/**
 * Clocks of single processes, which can be set while they run: libfaketime of
 * Debian, which reads a file. A time namespace would not do, for it has no wall
 * clock of its own. Elapsed time is left alone, as a machine leaves it whose
 * clock is set.
 *
 * @module
 */

import { debianLibrary } from "../../tests/support/program/debian.ts";
import { PeerMissingError } from "../../tests/support/program/missing.ts";

/** See the module description. */
export class FakeClocks {
  private constructor(
    private readonly library: string,
    private readonly folder: string,
    /** Whose clock can be set; all others run with the machine's own. */
    readonly machines: readonly string[],
    /** Why no clock can be set; empty when they can. */
    readonly obstacle: string,
  ) {}

  static async open(
    folder: string,
    machines: readonly string[],
  ): Promise<FakeClocks> {
    try {
      const library = await debianLibrary("libfaketime");
      const clocks = new FakeClocks(library, folder, machines, "");
      for (const machine of machines) await clocks.set(machine, 0);
      return clocks;
    } catch (error) {
      if (!(error instanceof PeerMissingError)) throw error;
      return new FakeClocks("", folder, [], error.message);
    }
  }

  /** Words in front of a command whose clock is to be set later. */
  prefixOf(machine: string): readonly string[] {
    if (!this.machines.includes(machine)) return [];
    return [
      "env",
      `LD_PRELOAD=${this.library}`,
      `FAKETIME_TIMESTAMP_FILE=${this.#fileOf(machine)}`,
      "FAKETIME_CACHE_DURATION=1",
      "FAKETIME_DONT_FAKE_MONOTONIC=1",
    ];
  }

  /** Seconds that `machine` is to be ahead. */
  async set(machine: string, aheadSeconds: number): Promise<void> {
    const sign = aheadSeconds < 0 ? "-" : "+";
    const text = `${sign}${Math.abs(aheadSeconds)}\n`;
    await Deno.writeTextFile(this.#fileOf(machine), text);
  }

  #fileOf(machine: string): string {
    return `${this.folder}/clock-${machine}`;
  }
}
