/**
 * The project's own TypeScript files and what they import.
 *
 * Shared by the checks in this folder. Knows nothing of what is allowed.
 *
 * @module
 */

/** One `import` or `export … from`, or a module named by URL. */
export interface Import {
  /** As written, e.g. `../frames/frame.ts` or `node:zlib`. */
  readonly specifier: string;
  /** 1-based. */
  readonly line: number;
  /** Nothing of it is left when the program runs. */
  readonly isType: boolean;
}

/** Folders that hold no source of ours. */
const SKIPPED: ReadonlySet<string> = new Set(["node_modules", "dist"]);

// The part before `from` may span lines but no quote and no semicolon, so a
// match never runs from one statement into the next.
const STATIC =
  /(?<=^|\n)[ \t]*(?:import|export)\b(?:[^"';]*?\bfrom)?\s*["']([^"'\n]+)["']/g;
const DYNAMIC = /\bimport\(\s*["']([^"'\n]+)["']/g;
// Workers, child processes and lazily read files name their module so.
const BY_URL =
  /(?:new URL\(|import\.meta\.resolve\()\s*["']([^"'\n]+\.ts)["']/g;
// `// @ts-types="./x.d.ts"` brings a declaration file in.
const TYPES_PRAGMA = /\/\/ @ts-types="([^"\n]+)"/g;

/** Everything that `source` imports, in no particular order. */
export function importsOf(source: string): Import[] {
  const imports: Import[] = [];
  for (const pattern of [STATIC, DYNAMIC, BY_URL, TYPES_PRAGMA]) {
    for (const match of source.matchAll(pattern)) {
      const offset = match.index + match[0].length - match[0].trimStart()
        .length;
      const line = source.slice(0, offset).split("\n").length;
      const isType = pattern === TYPES_PRAGMA || isOfTypes(match[0]);
      imports.push({ specifier: match[1]!, line, isType });
    }
  }
  return imports;
}

/** `import type …`, or braces around nothing but types. */
function isOfTypes(statement: string): boolean {
  const text = statement.trim();
  if (/^(?:import|export)\s+type\b/.test(text)) return true;
  const names = /^(?:import|export)\s*\{([^}]*)\}\s*from/.exec(text)?.[1];
  return names?.split(",").map((name) => name.trim()).filter(Boolean)
    .every((name) => name.startsWith("type ")) ?? false;
}

/** `specifier` as seen from the file `from`, as a path from the root. */
export function resolveRelative(from: string, specifier: string): string {
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}

/** All `.ts` and `.tsx` files below `directory`, sorted, without hidden folders. */
export async function typescriptFiles(directory = "."): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Deno.readDir(directory)) {
    if (entry.name.startsWith(".") || SKIPPED.has(entry.name)) continue;
    const path = directory === "." ? entry.name : `${directory}/${entry.name}`;
    if (entry.isDirectory) found.push(...await typescriptFiles(path));
    else if (/\.tsx?$/.test(path)) found.push(path);
  }
  return found.sort();
}

/** Rooms of which the program is made. */
const PRODUCT =
  /^(?:admin|agent|cli|client|neighbours|net|platform|policy|proto|server|services)\//;

/** The source of each file of the program by its path; tests are none. */
export async function productSources(): Promise<ReadonlyMap<string, string>> {
  const paths = (await typescriptFiles()).filter((path) =>
    PRODUCT.test(path) && !/(?:_test|_bench|\.d)\.tsx?$/.test(path)
  );
  return new Map(
    await Promise.all(
      paths.map(async (path) => [path, await Deno.readTextFile(path)] as const),
    ),
  );
}
