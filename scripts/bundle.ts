/**
 * The program as it is carried: one module that puts the modules of the program
 * into a folder. They are bundled so that a command loads its own only; a
 * command is one when `cli/commands.ts` loads it by `import()`.
 *
 * @module
 */

/** The module that a program begins with. */
export const ENTRY = "main.js";

/** Where commands are loaded from, as the bundler marks it. */
const COMMANDS = "// cli/commands.ts\n";

/** Where the next module of ours or of a library begins. */
const NEXT_MODULE = /^\/\/ \S+\.[jt]sx?$/m;

/** Modules by file name, the entry last: where it is, all are. */
export type Modules = ReadonlyMap<string, string>;

/**
 * Bundles `main.ts` with all that it imports.
 *
 * @param folder For a moment; it must not be there yet.
 * @throws {Error} The bundler's own words.
 */
export async function bundleProgram(folder: string): Promise<Modules> {
  try {
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        // Frozen: what is shipped is what deno.lock has hashes of.
        ...["bundle", "--quiet", "--frozen", "--code-splitting"],
        ...["--outdir", folder, "main.ts"],
      ],
    }).output();
    if (!success) {
      const words = new TextDecoder().decode(stderr).trim();
      throw new Error(`Cannot bundle main.ts: ${words}`);
    }
    const names = [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
    const rest = names.filter((name) => name !== ENTRY);
    return new Map([...rest, ENTRY].map((name) => {
      const text = Deno.readTextFileSync(`${folder}/${name}`);
      return [name, name === ENTRY ? withLazyCommands(text) : text];
    }));
  } finally {
    await Deno.remove(folder, { recursive: true }).catch(() => {});
  }
}

/**
 * The platform loads what an `import()` names by a literal before the program
 * begins, for each command all of them: what names a command is no literal.
 * Everywhere else it stays one, for a program that has run for a month must not
 * depend on files that a cleaner of `/tmp` may have removed since.
 *
 * @throws {Error} When the bundler has come to mark modules in another way.
 */
export function withLazyCommands(text: string): string {
  const from = text.indexOf(COMMANDS);
  if (from < 0) throw new Error(`Cannot find ${COMMANDS.trim()} in the bundle`);
  const body = from + COMMANDS.length;
  const length = text.slice(body).search(NEXT_MODULE);
  const to = length < 0 ? text.length : body + length;
  const lazy = text.slice(body, to)
    .replaceAll(/\bimport\((".+?")\)/g, "import(String($1))");
  return text.slice(0, body) + lazy + text.slice(to);
}

/** The module that writes `modules` to the folder that is its argument. */
export function unpacking(modules: Modules): string {
  return `const modules = ${JSON.stringify(Object.fromEntries(modules))};
const [folder] = Deno.args;
const fresh = \`\${folder}.\${Deno.pid}\`;
try {
  Deno.mkdirSync(fresh, { mode: 0o700 });
  for (const [name, text] of Object.entries(modules)) {
    const file = Deno.openSync(\`\${fresh}/\${name}\`, { write: true, create: true, mode: 0o600 });
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
    file.syncDataSync();
    file.close();
  }
  // What stands there is not whole, or of a start at the same time.
  try { Deno.removeSync(folder, { recursive: true }); } catch {}
  Deno.renameSync(fresh, folder);
} catch {
  try { Deno.removeSync(fresh, { recursive: true }); } catch {}
  Deno.exit(1);
}
`;
}
