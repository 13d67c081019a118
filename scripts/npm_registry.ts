/**
 * Fetches packages from the npm registry that this machine is set up for.
 *
 * @module
 */

/** What npm itself uses when nothing is configured. */
const PUBLIC_REGISTRY = "https://registry.npmjs.org/";

/** A published version of a package. */
export interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  readonly tarball: string;
  /** Subresource integrity, such as `sha512-…`. */
  readonly integrity: string;
}

/**
 * Where packages come from: `npm_config_registry`, then the `registry` line of
 * the project's and the user's `.npmrc`, as npm does it.
 */
export function registryUrl(): string {
  const files = [".npmrc", `${Deno.env.get("HOME") ?? ""}/.npmrc`];
  const found = Deno.env.get("npm_config_registry") ??
    Deno.env.get("NPM_CONFIG_REGISTRY") ??
    files.map(registryLine).find((line) => line !== undefined) ??
    PUBLIC_REGISTRY;
  return found.endsWith("/") ? found : `${found}/`;
}

/**
 * Finds `version` of a package or, because registries lag behind, the newest
 * older patch of the same minor version.
 *
 * @throws {Error} When there is neither.
 */
export async function findPackage(
  name: string,
  version: string,
): Promise<PublishedPackage> {
  const url = registryUrl() + name.replace("/", "%2f");
  const response = await fetch(url);
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(
      `Cannot find ${name}: the registry says ${response.status}`,
    );
  }
  const { versions } = await response.json() as {
    versions: Record<string, { dist: { tarball: string; integrity: string } }>;
  };
  const chosen = newestUpTo(version, Object.keys(versions));
  if (chosen === undefined) {
    throw new Error(
      `Cannot find ${name}@${version}: the registry has neither it nor an ` +
        "older patch of it",
    );
  }
  return { name, version: chosen, ...versions[chosen]!.dist };
}

/** The newest of `versions` that differs from `wanted` in an older patch only. */
export function newestUpTo(
  wanted: string,
  versions: readonly string[],
): string | undefined {
  const [major, minor, patch] = wanted.split(".").map(Number);
  return versions
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version))
    .map((version) => ({ version, parts: version.split(".").map(Number) }))
    .filter(({ parts }) =>
      parts[0] === major && parts[1] === minor && parts[2]! <= patch!
    )
    .sort((a, b) => b.parts[2]! - a.parts[2]!)[0]?.version;
}

/**
 * Downloads a package's tarball, or takes it from `cacheDirectory`.
 *
 * @throws {Error} When what came is not what the registry promised.
 */
export async function fetchTarball(
  published: PublishedPackage,
  cacheDirectory: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const { name, version, tarball, integrity } = published;
  const path = `${cacheDirectory}/${name.replace("/", "+")}-${version}.tgz`;
  try {
    const cached = await Deno.readFile(path);
    if (await hasIntegrity(cached, integrity)) return cached;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const response = await fetch(tarball);
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`Cannot fetch ${name}@${version}: ${response.status}`);
  }
  const octets = await response.bytes();
  if (!await hasIntegrity(octets, integrity)) {
    throw new Error(
      `Cannot use ${name}@${version}: what came is not what the registry ` +
        `promised (${integrity})`,
    );
  }
  await Deno.mkdir(cacheDirectory, { recursive: true });
  await Deno.writeFile(path, octets);
  return octets;
}

/** Whether `octets` have the hash that a `sha512-…` text names. */
export async function hasIntegrity(
  octets: Uint8Array<ArrayBuffer>,
  integrity: string,
): Promise<boolean> {
  const wanted = /^sha512-(.+)$/.exec(integrity)?.[1];
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-512", octets));
  return wanted !== undefined && hash.toBase64() === wanted;
}

function registryLine(path: string): string | undefined {
  let content: string;
  try {
    content = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
  return /^\s*registry\s*=\s*(\S+)\s*$/m.exec(content)?.[1];
}
