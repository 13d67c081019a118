/**
 * The table of rights in `docs/security.md`, from what commands say of
 * themselves; `reference.ts` writes it.
 *
 * @module
 */

import { allCommands } from "../cli/commands.ts";
import { RIGHTS, type Rights } from "../cli/program/rights.ts";

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
