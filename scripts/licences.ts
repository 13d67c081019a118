// deno-lint-ignore-file no-console -- a command that prints a table.
/**
 * Every dependency of `deno.lock` with its version, integrity and licence, as
 * its own `package.json` in the npm cache states it. Fails on a package without
 * integrity and on a licence that is unknown here or copyleft.
 *
 * Usage: `deno task licences`
 *
 * @module
 */

/** Licences that ask for no more than their text be kept. */
const PERMISSIVE: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "Python-2.0",
]);

/** Used by tests alone, as they come: nothing of them is in what ships. */
const TESTS_ONLY: ReadonlyMap<string, string> = new Map([
  ["axe-core", "MPL-2.0"],
]);

/** One package. */
export interface Dependency {
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
  readonly licence: string;
}

/** The part of `deno.lock` that is read. */
interface Lock {
  readonly npm?: Readonly<Record<string, { readonly integrity?: string }>>;
  readonly jsr?: Readonly<Record<string, unknown>>;
  readonly remote?: Readonly<Record<string, unknown>>;
}

/**
 * All packages of a lock file.
 *
 * @param licenceOf What a package says about itself.
 */
export function dependencies(
  lock: Lock,
  licenceOf: (name: string, version: string) => string,
): Dependency[] {
  return Object.entries(lock.npm ?? {}).map(([key, { integrity = "" }]) => {
    // Peers that it was resolved with stand behind an underscore.
    const [, name, version] = /^(@?[^@]+)@([^_]+)/.exec(key)!;
    const licence = licenceOf(name!, version!);
    return { name: name!, version: version!, integrity, licence };
  });
}

/** What is wrong with a lock file's packages, in sentences. */
export function problemsOf(
  lock: Lock,
  packages: readonly Dependency[],
): string[] {
  const elsewhere = [
    ...Object.keys(lock.jsr ?? {}),
    ...Object.keys(lock.remote ?? {}),
  ].map((name) => `${name} is not from npm: say here how its licence is known`);
  return [
    ...elsewhere,
    ...packages.flatMap(({ name, version, integrity, licence }) => [
      ...(integrity.startsWith("sha512-")
        ? []
        : [`${name}@${version} has no sha512 integrity in deno.lock`]),
      ...(isPermissive(licence) || TESTS_ONLY.get(name) === licence
        ? []
        : [`${name}@${version} has the licence ${licence || "(none)"}`]),
    ]),
  ];
}

/** Of an expression such as `(MIT OR GPL-3.0)` any part may be chosen. */
function isPermissive(expression: string): boolean {
  const parts = expression.replace(/^\(|\)$/g, "").split(" OR ");
  return parts.some((part) =>
    part.split(" AND ").every((one) => PERMISSIVE.has(one.trim()))
  );
}

/** Where Deno keeps the packages of npm. */
export async function npmCache(): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json"],
  }).output();
  const { npmCache } = JSON.parse(new TextDecoder().decode(stdout));
  const [registry] = [...Deno.readDirSync(npmCache)];
  if (registry === undefined) {
    throw new Error(`Cannot read licences: ${npmCache} is empty; run a task`);
  }
  return `${npmCache}/${registry.name}`;
}

function licenceIn(folder: string, name: string, version: string): string {
  const path = `${folder}/${name}/${version}/package.json`;
  const { license } = JSON.parse(Deno.readTextFileSync(path));
  return typeof license === "string" ? license : license?.type ?? "";
}

/** The lock file, and its packages with what each says about itself. */
async function readLock(): Promise<[Lock, readonly Dependency[]]> {
  const lock: Lock = JSON.parse(
    Deno.readTextFileSync(new URL("../deno.lock", import.meta.url)),
  );
  const folder = await npmCache();
  return [
    lock,
    dependencies(lock, (name, version) => licenceIn(folder, name, version)),
  ];
}

/** All packages that `deno.lock` has. */
export async function lockedPackages(): Promise<readonly Dependency[]> {
  return (await readLock())[1];
}

if (import.meta.main) {
  const [lock, packages] = await readLock();
  for (const { name, version, licence, integrity } of packages) {
    console.log(`${name}@${version}  ${licence}  ${integrity}`);
  }
  const problems = problemsOf(lock, packages);
  for (const problem of problems) console.error(problem);
  console.log(`${packages.length} packages, ${problems.length} problems`);
  Deno.exitCode = problems.length === 0 ? 0 : 1;
}
