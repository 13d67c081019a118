/**
 * The one place where the version of this program stands.
 *
 * @module
 */

/** Semantic version; releases change it and nothing else does. */
export const VERSION = "0.1.0";
