/**
 * Views of the catalog, one for each audience that somebody asks for, kept up to
 * date at the cost of what changed.
 *
 * A service is looked at again when it, or the list of its endpoints, is another
 * object than before; its resources are made again by the generator; those that
 * say what they said stay the objects that they were. So the next view differs
 * from the last by identity exactly where clients have something to be told.
 *
 * Reading order: `Views.update`, `Views.viewOf`, then `audience_view.ts`.
 *
 * @module
 */

import { EMPTY_SNAPSHOT, type Snapshot } from "../../../catalog/snapshot.ts";
import type { View } from "../view.ts";
import { AudienceView, NO_ENDPOINTS } from "./audience_view.ts";
import type { Audience } from "./audience.ts";
import type {
  Generate,
  ServiceResources,
  Unserved,
} from "./service_resources.ts";
import { Shelf } from "./shelf.ts";

/** An audience that nobody asked for during so many updates is forgotten. */
export const IDLE_UPDATES_MAX = 16;

/** See the module description. */
export class Views {
  readonly #shelf: Shelf;
  readonly #audiences = new Map<string, Kept>();
  #snapshot: Snapshot | undefined;
  #updates = 0;
  #touched: Touched | undefined;

  /** @param generate `generateService`, unless a test wants to see to it. */
  constructor(generate: Generate) {
    this.#shelf = new Shelf(generate);
  }

  /** Whether there is anything to be told yet. */
  get isReady(): boolean {
    return this.#snapshot !== undefined;
  }

  /**
   * Takes the catalog as it is now. Views are made when they are asked for, so
   * this costs next to nothing.
   */
  update(snapshot: Snapshot): void {
    if (snapshot === this.#snapshot) return;
    const before = this.#snapshot;
    this.#snapshot = snapshot;
    this.#updates++;
    for (const key of before?.services.keys() ?? []) {
      if (!snapshot.services.has(key)) this.#shelf.drop(key);
    }
    this.#forgetIdle();
  }

  /**
   * All that `audience` may be told now; the same object while that stays the
   * same.
   *
   * @throws {TypeError} Before the first update.
   */
  viewOf(audience: Audience): View {
    return this.#current(audience).view;
  }

  /**
   * What of the services that `audience` may see it is not served, and why; in
   * the order of services.
   *
   * @throws {TypeError} Before the first update.
   */
  unservedTo(audience: Audience): readonly Unserved[] {
    return this.#current(audience).unserved;
  }

  /**
   * Makes what `viewOf` needs, a service at a time, for who must not hold up
   * others for long. It ends early when the catalog is updated meanwhile.
   */
  *preparing(audience: Audience): Generator<void, void, void> {
    const snapshot = this.#snapshot;
    const before = this.#audiences.get(audience.key)?.snapshot ??
      EMPTY_SNAPSHOT;
    if (snapshot === undefined || before === snapshot) return;
    for (const key of this.#touchedBetween(before, snapshot)) {
      if (this.#snapshot !== snapshot) return;
      const service = snapshot.services.get(key);
      if (service === undefined || !audience.visible.sees(key)) continue;
      const endpoints = snapshot.endpoints.get(key) ?? NO_ENDPOINTS;
      this.#shelf.resourcesOf(key, { service, endpoints }, audience);
      yield;
    }
  }

  /** Nobody is of these audiences, and it may be long until somebody is. */
  forget(keys: Iterable<string>): void {
    for (const key of keys) this.#audiences.delete(key);
    this.#keepUsed();
  }

  /** Audiences that are kept up to date. */
  get audiences(): readonly Audience[] {
    return [...this.#audiences.values()].map(({ of }) => of.audience);
  }

  #current(audience: Audience): AudienceView {
    const snapshot = this.#snapshot;
    if (snapshot === undefined) {
      throw new TypeError("There is no view before the catalog's first update");
    }
    let kept = this.#audiences.get(audience.key);
    if (kept === undefined) {
      kept = {
        of: new AudienceView(audience, this.#shelf),
        snapshot: EMPTY_SNAPSHOT,
        askedAt: 0,
      };
      this.#audiences.set(audience.key, kept);
    }
    kept.askedAt = this.#updates;
    if (kept.snapshot !== snapshot) {
      kept.of.take(snapshot, this.#touchedBetween(kept.snapshot, snapshot));
      kept.snapshot = snapshot;
    }
    return kept.of;
  }

  /** Most audiences go the same way at the same time. */
  #touchedBetween(before: Snapshot, after: Snapshot): readonly string[] {
    let touched = this.#touched;
    if (touched?.before !== before || touched.after !== after) {
      touched = { before, after, keys: compare(before, after) };
      this.#touched = touched;
    }
    return touched.keys;
  }

  #forgetIdle(): void {
    let isAnyGone = false;
    for (const [key, { askedAt }] of this.#audiences) {
      if (this.#updates - askedAt <= IDLE_UPDATES_MAX) continue;
      this.#audiences.delete(key);
      isAnyGone = true;
    }
    if (isAnyGone) this.#keepUsed();
  }

  #keepUsed(): void {
    const used = new Set<ServiceResources>();
    for (const { of } of this.#audiences.values()) {
      for (const resources of of.inUse) used.add(resources);
    }
    this.#shelf.keepOnly(used);
  }
}

/** One audience's view, what it was made of, and when it was asked for. */
interface Kept {
  readonly of: AudienceView;
  snapshot: Snapshot;
  /** Number of the update. */
  askedAt: number;
}

/** Services that are not what they were. */
interface Touched {
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly keys: readonly string[];
}

function compare(before: Snapshot, after: Snapshot): readonly string[] {
  const keys: string[] = [];
  for (const [key, service] of after.services) {
    const isSame = before.services.get(key) === service &&
      before.endpoints.get(key) === after.endpoints.get(key);
    if (!isSame) keys.push(key);
  }
  for (const key of before.services.keys()) {
    if (!after.services.has(key)) keys.push(key);
  }
  return keys;
}
