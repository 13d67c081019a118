/** The part of `@std/cli` that this project uses, typed after its JSR documentation. */

export interface ParseOptions {
  readonly boolean?: readonly string[];
  readonly string?: readonly string[];
  readonly collect?: readonly string[];
  readonly alias?: Readonly<Record<string, string | readonly string[]>>;
  readonly default?: Readonly<Record<string, unknown>>;
  readonly negatable?: readonly string[];
  readonly stopEarly?: boolean;
  readonly "--"?: boolean;
  /** Return `false` to keep an argument out of the result. */
  readonly unknown?: (arg: string, key?: string, value?: unknown) => unknown;
}

export function parseArgs(
  args: readonly string[],
  options?: ParseOptions,
): {
  readonly _: readonly (string | number)[];
  readonly [name: string]: unknown;
};
