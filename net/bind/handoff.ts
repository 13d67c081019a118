/**
 * A meeting point of arrivals and waiters: at any time one of the two queues is
 * empty.
 *
 * @module
 */

export class Handoff<One> {
  readonly #here: One[] = [];
  #waiting: PromiseWithResolvers<One> | undefined;

  /** Whether a caller waits. */
  get isAwaited(): boolean {
    return this.#waiting !== undefined;
  }

  /** One that is here. */
  take(): One | undefined {
    return this.#here.shift();
  }

  takeAll(): One[] {
    return this.#here.splice(0);
  }

  /** The next one, when none is here. One call at a time. */
  next(): Promise<One> {
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  put(one: One): void {
    if (this.#waiting === undefined) this.#here.push(one);
    else this.#waiting.resolve(one);
    this.#waiting = undefined;
  }

  /** No arrival will come for those that wait. */
  fail(error: unknown): void {
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}
