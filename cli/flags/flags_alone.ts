/**
 * Flags by themselves, where they are checked on another machine than they are
 * for: what a file or a group there says is taken to be in order.
 *
 * @module
 */

import type { FlagSources } from "./read_flags.ts";

/** Any number will do. */
const SOME_GROUP = "0";

/** What go-etcd's file may say; as good a password as any. */
const SOME_TEXT = '{"cluster":{"machines":["http://127.0.0.1:2379"]}}';

/** Every file is there. */
export const SOME_FILES: Pick<FlagSources, "readFile"> = {
  readFile: () => SOME_TEXT,
};

/** Names of groups are in a file of the machine. */
export function withSomeGroup<
  Values extends { readonly "admin-socket-group": string },
>(values: Values): Values {
  const group = values["admin-socket-group"] === "" ? "" : SOME_GROUP;
  return { ...values, "admin-socket-group": group };
}
