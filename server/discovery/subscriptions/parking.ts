/**
 * Content that a client refused, and what it has instead.
 *
 * What was refused is not sent again until it changes: a client that says no
 * says no again, and a loop of both is the best known failure of such servers. A
 * refusal names a resource when people are lucky; then only that one is parked.
 * What of the rest was applied is not known, so nothing is assumed of it: the
 * next content is sent, even when it is what the client had before.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view.ts";
import type { NameSet } from "./name_set.ts";
import type { Names } from "./shared_names.ts";

/** Characters of a client's words that are kept. */
export const NACK_MESSAGE_MAX = 1_024;

/** One refused resource. */
interface ParkedContent {
  readonly version: string;
  /** What the client took last; absent if that is not known. */
  readonly good: Resource | undefined;
}

/** See the module description; what one stream refused of one kind. */
export class Parking {
  readonly #parked = new Map<string, ParkedContent>();

  get size(): number {
    return this.#parked.size;
  }

  get names(): readonly string[] {
    return [...this.#parked.keys()];
  }

  /**
   * @param good What was taken before that, as far as it is known; no matter
   *   when something is parked already.
   * @param isThere Whether that is what there is; else it stood in for it.
   */
  park(
    { name, version }: Resource,
    good: Resource | undefined,
    isThere: boolean,
  ): void {
    const before = this.#parked.get(name);
    if (before === undefined) {
      this.#parked.set(name, { version, good });
    } else if (before.good?.version !== version) {
      this.#parked.set(name, { version, good: before.good });
    } else if (isThere && before.version !== version) {
      // What seemed to be good was only not answered.
      this.#parked.set(name, { version, good: undefined });
    } // It stood in for what was refused first, and that is still so.
  }

  /** Whether exactly this was refused. */
  holds({ name, version }: Resource): boolean {
    return this.#parked.get(name)?.version === version;
  }

  /** What the client has instead; only of what is held. */
  standIn({ name }: Resource): Resource | undefined {
    return this.#parked.get(name)?.good;
  }

  /** A client that asks again is told again. */
  forgetUnasked(asked: NameSet): void {
    for (const name of this.#parked.keys()) {
      if (!asked.covers(name)) this.#parked.delete(name);
    }
  }

  forget(names: Names): void {
    for (const name of names) this.#parked.delete(name);
  }

  /** Nothing is refused of what is not there. */
  forgetGone(told: ByName): void {
    for (const name of this.#parked.keys()) {
      if (!told.has(name)) this.#parked.delete(name);
    }
  }

  /** The client took what it was told: forgets what that is instead of. */
  forgetTaken(told: ByName): void {
    for (const [name, { version }] of this.#parked) {
      if (told.get(name)?.version !== version) this.#parked.delete(name);
    }
  }
}

/** Part of a name, when it stands right beside one. */
const NAME_PART = /[\p{L}\p{N}_/-]/u;
/** In a name, but also behind one, at the end of a sentence. */
const NAME_JOINT = /[.:~@]/;

/** Those of `resources` that a client's message names. */
export function resourcesNamedIn(
  message: string,
  resources: readonly Resource[],
): readonly Resource[] {
  return resources.filter(({ name }) => isNamedIn(message, name));
}

function isNamedIn(message: string, name: string): boolean {
  if (name === "") return false;
  for (
    let at = message.indexOf(name);
    at >= 0;
    at = message.indexOf(name, at + 1)
  ) {
    if (isWholeName(message, at, at + name.length)) return true;
  }
  return false;
}

/** `web:80` is not named by `web:8080`, nor by `default/web:80`. */
function isWholeName(message: string, start: number, end: number): boolean {
  const before = message.charAt(start - 1);
  if (NAME_PART.test(before)) return false;
  if (NAME_JOINT.test(before) && NAME_PART.test(message.charAt(start - 2))) {
    return false;
  }
  const after = message.charAt(end);
  if (NAME_PART.test(after)) return false;
  return !(NAME_JOINT.test(after) && NAME_PART.test(message.charAt(end + 1)));
}
