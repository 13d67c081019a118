/**
 * Something that must not happen, told by a callback: it fails the test that
 * waits for something else meanwhile. Thrown from a callback it would be
 * nobody's, and end all tests of the file instead.
 *
 * @module
 */

/** See the module description. */
export class Trouble {
  readonly #happened = Promise.withResolvers<never>();

  constructor() {
    // Whoever waits for nothing then does not hear of it.
    this.#happened.promise.catch(() => {});
  }

  /** For a callback that must not be called. */
  readonly report = (error: unknown): void =>
    this.#happened.reject(
      error instanceof Error ? error : new Error(String(error)),
    );

  /** What `wanted` brings, unless there is trouble first. */
  instead<Result>(wanted: Promise<Result>): Promise<Result> {
    return Promise.race([wanted, this.#happened.promise]);
  }
}
