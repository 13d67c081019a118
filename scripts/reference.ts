/**
 * Writes what stands in the repository and is made of tables in the code:
 * `deno task reference`. A test beside this file fails while a file is not
 * current.
 *
 * @module
 */

import { dashboards } from "./dashboards.ts";
import { errorPage } from "./error_docs.ts";
import { flagPage } from "./flag_docs.ts";
import { pictures } from "./pictures.ts";
import { withRights } from "./rights_docs.ts";

const ROOT = new URL("../", import.meta.url);

/** Each file's text, as it is to be, by its place below the root. */
export async function reference(): Promise<ReadonlyMap<string, string>> {
  const security = await Deno.readTextFile(new URL("docs/security.md", ROOT));
  return new Map([
    ["docs/reference/errors.md", errorPage()],
    ["docs/reference/flags.md", await flagPage()],
    ["docs/security.md", await withRights(security)],
    ...dashboards(),
    ...await pictures(),
  ]);
}

/** Places of files that say something else than they are to. */
export async function stale(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [path, text] of await reference()) {
    if (await Deno.readTextFile(new URL(path, ROOT)) !== text) found.push(path);
  }
  return found;
}

if (import.meta.main) {
  for (const [path, text] of await reference()) {
    await Deno.writeTextFile(new URL(path, ROOT), text);
  }
}
