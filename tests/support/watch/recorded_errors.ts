/**
 * Internal errors that a test provokes, and reads instead of failing.
 *
 * @module
 */

import {
  onInternalErrors,
  type Where,
} from "../../../platform/errors/internal_errors.ts";

/** See the module description. Until it is disposed of. */
export class RecordedErrors implements Disposable {
  readonly errors: { readonly where: Where; readonly message: string }[] = [];
  readonly #stop: () => void;

  constructor() {
    this.#stop = onInternalErrors((where, error) => {
      const message = error instanceof Error ? error.message : String(error);
      this.errors.push({ where, message });
    });
  }

  /** What was said, oldest first. */
  get messages(): string[] {
    return this.errors.map(({ message }) => message);
  }

  [Symbol.dispose](): void {
    this.#stop();
  }
}
