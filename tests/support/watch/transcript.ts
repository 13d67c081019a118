/**
 * What something under test has said, line by line; a test waits for lines.
 *
 * @module
 */

interface Wait {
  readonly isOver: () => boolean;
  readonly resolve: () => void;
}

/** See the module description. */
export class Transcript {
  readonly lines: string[] = [];
  #waits: Wait[] = [];

  add(line: string): void {
    this.lines.push(line);
    const over = this.#waits.filter(({ isOver }) => isOver());
    this.#waits = this.#waits.filter((wait) => !over.includes(wait));
    for (const { resolve } of over) resolve();
  }

  /** The first `count` lines, once there are that many. */
  async first(count: number): Promise<string[]> {
    if (this.lines.length < count) {
      await this.#until(() => this.lines.length >= count);
    }
    return this.lines.slice(0, count);
  }

  /** The `count`th line, once it is there. */
  async nth(count: number): Promise<string> {
    return (await this.first(count))[count - 1]!;
  }

  /** The first line that contains these words, once it is there. */
  async containing(words: string): Promise<string> {
    const find = () => this.lines.find((line) => line.includes(words));
    if (find() === undefined) await this.#until(() => find() !== undefined);
    return find()!;
  }

  #until(isOver: () => boolean): Promise<void> {
    return new Promise((resolve) => this.#waits.push({ isOver, resolve }));
  }
}
