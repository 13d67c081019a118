/**
 * Which connections are asked for.
 *
 * @module
 */

import { ADMIN_PATHS } from "../../proto/admin/api.ts";

/** What may be asked for; empty texts ask for all. */
export interface ConduitsQuestion {
  readonly node?: string;
  readonly caller?: string;
  readonly target?: string;
  readonly service?: string;
  readonly sort: string;
  readonly limit: number;
}

/** The path that asks it. */
export function conduitsPath(question: ConduitsQuestion): string {
  const query = new URLSearchParams();
  for (const name of ["node", "caller", "target", "service"] as const) {
    const value = question[name] ?? "";
    if (value !== "") query.set(name, value);
  }
  query.set("sort", question.sort);
  query.set("limit", String(question.limit));
  return `${ADMIN_PATHS.conduits}?${query}`;
}
