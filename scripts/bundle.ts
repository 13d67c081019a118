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
    const made = [...Deno.readDirSync(folder)].map(({ name }) => {
      const text = Deno.readTextFileSync(`${folder}/${name}`);
      return [name, name === ENTRY ? withLazyCommands(text) : text] as const;
    });
    return await reproducible(new Map(made));
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

/** How the bundler names a module: after its source, and after a hash. */
const REFERENCE = /\b([\w.-]+)-[0-9A-Z]{8}\.js\b/g;

/** A file of a library, in a comment or as the name of a CommonJS module. */
const LIBRARY = /^(\/\/ | *")\S*\/npm\/[^/\s]+\//gm;

/** Rounds after which modules that differ in what they import differ in name. */
const ROUNDS = 4;

/**
 * The same modules, however the machine's folders are called: without the paths
 * that the bundler notes, and named by what they contain.
 */
export async function reproducible(modules: Modules): Promise<Modules> {
  const texts = new Map(
    [...modules].map(([name, text]) =>
      [name, text.replaceAll(LIBRARY, "$1npm/")] as const
    ),
  );
  let names = new Map([...texts.keys()].map((name) => [name, ""]));
  for (let round = 0; round < ROUNDS; round++) {
    const next = [...texts].map(async ([name, text]) => {
      const body = text.replaceAll(
        REFERENCE,
        (reference, source) => `${source}-${names.get(reference) ?? ""}`,
      );
      const bytes = new TextEncoder().encode(body);
      const digest = await crypto.subtle.digest("SHA-256", bytes);
      return [name, new Uint8Array(digest).toHex().slice(0, 8)] as const;
    });
    names = new Map(await Promise.all(next));
  }
  const renamed = (name: string) =>
    name === ENTRY ? name : name.replace(
      REFERENCE,
      (reference, source) => `${source}-${names.get(reference) ?? ""}.js`,
    );
  const named = [...texts].map(([name, text]) =>
    [renamed(name), text.replaceAll(REFERENCE, renamed)] as const
  ).sort(([a], [b]) => a === ENTRY ? 1 : b === ENTRY ? -1 : a < b ? -1 : 1);
  const result = new Map(named);
  if (result.size === texts.size) return result;
  throw new Error("Cannot name the modules of the bundle: two are the same");
}

/** A version that was started since is kept. */
const OLD_MS = 7 * 24 * 3_600_000;

/**
 * The code that writes `modules` to a folder, and then names those beside it
 * that no start has used for long; and their texts, one after the other: as a
 * module of 5 MB they would take 35 of memory. Its arguments: a file that ends
 * with the texts, and the folder.
 */
export function unpacking(modules: Modules): readonly [string, string] {
  const sizes = [...modules].map(([name, text]) =>
    [name, new TextEncoder().encode(text).length] as const
  );
  const total = sizes.reduce((sum, [, bytes]) => sum + bytes, 0);
  const code = `const modules = ${JSON.stringify(sizes)};
const [texts, folder] = Deno.args;
const fresh = \`\${folder}.\${Deno.pid}\`;
try {
  Deno.mkdirSync(fresh, { mode: 0o700 });
  const from = Deno.openSync(texts);
  from.seekSync(-${total}, Deno.SeekMode.End);
  for (const [name, size] of modules) {
    const file = Deno.openSync(\`\${fresh}/\${name}\`, { write: true, create: true, mode: 0o600 });
    const bytes = new Uint8Array(size);
    for (let at = 0; at < size;) at += from.readSync(bytes.subarray(at));
    for (let at = 0; at < size;) at += file.writeSync(bytes.subarray(at));
    file.syncDataSync();
    file.close();
  }
  try {
    Deno.renameSync(fresh, folder);
  } catch {
    // Another start was first and may be loading from there; or it is not whole.
    const entry = \`\${folder}/${ENTRY}\`;
    const [, size] = modules.find(([name]) => name === "${ENTRY}");
    let isWhole = false;
    try { isWhole = Deno.statSync(entry).size === size; } catch {}
    if (!isWhole) {
      try { Deno.removeSync(folder, { recursive: true }); } catch {}
      Deno.renameSync(fresh, folder);
    } else Deno.removeSync(fresh, { recursive: true });
  }
  const above = folder.slice(0, folder.lastIndexOf("/"));
  for (const { name } of Deno.readDirSync(above)) {
    const [, kind] = /^(tunnel|runtime|deno)-[0-9a-f]+$/.exec(name) ?? [];
    if (kind === undefined || \`\${above}/\${name}\` === folder) continue;
    const file = { tunnel: "/${ENTRY}", runtime: "/tunnel", deno: "" }[kind];
    try {
      const { atime, mtime } = Deno.statSync(above + "/" + name + file);
      const ageMs = Date.now() - Math.max(atime ?? 0, mtime ?? 0);
      if (ageMs > ${OLD_MS}) console.log(name);
    } catch {}
  }
} catch {
  try { Deno.removeSync(fresh, { recursive: true }); } catch {}
  Deno.exit(1);
}
`;
  return [code, [...modules.values()].join("")];
}
