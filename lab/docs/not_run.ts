/**
 * Command lines of the documents that are not run, as `page: line`, each with
 * its reason. A test compares them with the pages.
 *
 * @module
 */

export const NOT_RUN: ReadonlyMap<string, string> = new Map<string, string>([]);
