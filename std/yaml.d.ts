/** The part of `@std/yaml` that this project uses, typed after its JSR documentation. */

/** @throws {SyntaxError} With line and column when `content` is not YAML. */
export function parse(content: string): unknown;
export function stringify(data: unknown): string;
