/** The part of `@std/assert` that this project uses, typed after its JSR documentation. */

// deno-lint-ignore no-explicit-any
type Constructor<T> = abstract new (...args: any[]) => T;

export function assert(expr: unknown, msg?: string): asserts expr;
export function assertEquals<T>(actual: T, expected: T, msg?: string): void;
export function assertNotEquals<T>(actual: T, expected: T, msg?: string): void;
export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  msg?: string,
): asserts actual is T;
export function assertExists<T>(
  actual: T,
  msg?: string,
): asserts actual is NonNullable<T>;
export function assertInstanceOf<T>(
  actual: unknown,
  expectedType: Constructor<T>,
  msg?: string,
): asserts actual is T;
export function assertMatch(
  actual: string,
  expected: RegExp,
  msg?: string,
): void;
export function assertStringIncludes(
  actual: string,
  expected: string,
  msg?: string,
): void;
export function assertThrows(fn: () => unknown, msg?: string): unknown;
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  ErrorClass: Constructor<E>,
  msgIncludes?: string,
  msg?: string,
): E;
export function assertRejects(
  fn: () => PromiseLike<unknown>,
  msg?: string,
): Promise<unknown>;
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  ErrorClass: Constructor<E>,
  msgIncludes?: string,
  msg?: string,
): Promise<E>;
