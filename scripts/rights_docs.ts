/**
 * Writes the table of rights in `docs/security.md` from what commands say of
 * themselves.
 *
 * Usage: `deno run --allow-read --allow-write=docs --allow-env
 * scripts/rights_docs.ts`. A test beside this file fails while the page is not
 * current.
 *
 * @module
 */

import { allCommands } from "../cli/commands.ts";
import { RIGHTS, type Rights } from "../cli/program/rights.ts";

/** Where the table stands. */
export const SECURITY_PAGE = new URL("../docs/security.md", import.meta.url);

const BEGIN = "<!-- rights: begin -->\n";
const END = "<!-- rights: end -->\n";

/** The page with the table as it is to be. */
export async function withRights(page: string): Promise<string> {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`No ${BEGIN} and ${END}`);
  const table = await rightsTable();
  return `${page.slice(0, begin)}${BEGIN}${table}${page.slice(end)}`;
}

async function rightsTable(): Promise<string> {
  const commands = await allCommands();
  const namesOf = (wanted: Rights) =>
    commands.filter(({ rights, isHidden }) => rights === wanted && !isHidden)
      .map(({ name }) => `\`${name}\``).join(", ");
  const rows = Object.entries(RIGHTS).map(([name, flags]) =>
    `| ${name} | ${flags.map((flag) => `\`${flag}\``).join(" ")} | ` +
    `${namesOf(name as Rights)} |\n`
  );
  return `| rights | of the platform | commands |\n|---|---|---|\n` +
    rows.join("");
}

if (import.meta.main) {
  const page = await Deno.readTextFile(SECURITY_PAGE);
  await Deno.writeTextFile(SECURITY_PAGE, await withRights(page));
}
