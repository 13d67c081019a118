/**
 * What a client is to be sent of one kind whether it changed or not: names that it
 * asked for anew, endpoints whose cluster changed, or that a name does not exist.
 *
 * @module
 */

import { type Names, NO_NAMES, union } from "./shared_names.ts";

/** See the module description. */
export class PendingNames {
  /** A response is sent even when it is empty. */
  mustAnswer = false;
  /** The client asked for some of it, so it waits for no other kind. */
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

  /** Whether the removal of a name may be sent. */
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

  /** They are removed, and nothing that the client has leads to them. */
  noteReleased(names: Names): void {
    this.#released = names;
  }

  /** A response is sent: only `rest` is left. */
  reset(rest: Names): void {
    this.#names = rest;
    this.mustAnswer = false;
    this.isAwaited = false;
    this.#asked = NO_NAMES;
    this.#released = NO_NAMES;
  }
}
