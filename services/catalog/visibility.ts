/**
 * The services of the catalog that a client of discovery may see.
 *
 * @module
 */

/** A set of services, asked by name. */
export interface Visibility {
  /** The same for all clients that see the same services. */
  readonly id: string;
  /** @param service `namespace/name`. */
  sees(service: string): boolean;
}

/** For nodes that no rule restricts. */
export const SEES_EVERYTHING: Visibility = Object.freeze({
  id: "*",
  sees: () => true,
});
