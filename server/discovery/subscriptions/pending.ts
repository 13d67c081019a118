/**
 * What a client is to be told of one kind beside what changes: names that it
 * asked for anew, endpoints whose cluster changed, or that nothing is there.
 *
 * @module
 */

import { type Names, NO_NAMES, union } from "./shared_names.ts";

/** See the module description. */
export class Pending {
  /** There is an answer even when it says nothing. */
  mustAnswer = false;
  /** Something is owed because the client asked for it, so it waits for none. */
  isAwaited = false;
  #names: Names = NO_NAMES;
  #asked: Names = NO_NAMES;
  #released: Names = NO_NAMES;

  get names(): Names {
    return this.#names;
  }

  /** Names among them that the client asked for anew. */
  get asked(): Names {
    return this.#asked;
  }

  get isNothing(): boolean {
    return this.#names.size === 0 && !this.mustAnswer;
  }

  /** Whether a name that is gone may be told as such, and is not told only yet. */
  reportsRemoval(name: string): boolean {
    return this.#asked.has(name) || this.#released.has(name);
  }

  add(names: Names): void {
    this.#names = union(this.#names, names);
  }

  /** The client asks for names that it did not ask for, or asks anew. */
  noteAsked(names: Names): void {
    this.isAwaited = true;
    this.#asked = union(this.#asked, names);
  }

  /** They are gone, and nothing that the client was told leads to them. */
  noteReleased(names: Names): void {
    this.#released = names;
  }

  /** What is left after a response. */
  reset(rest: Names): void {
    this.#names = rest;
    this.mustAnswer = false;
    this.isAwaited = false;
    this.#asked = NO_NAMES;
    this.#released = NO_NAMES;
  }
}
