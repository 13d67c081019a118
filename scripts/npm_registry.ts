/**
 * Fetches packages from the npm registry that this machine is set up for.
 *
 * @module
 */

/** What npm itself uses when nothing is configured. */
const PUBLIC_REGISTRY = "https://registry.npmjs.org/";

/** One version of a package, to the byte. */
export interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  /** Subresource integrity of its tarball, such as `sha512-…`. */
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
 * The tarball of a package, from `cacheDirectory` or from the registry. What is
 * not what was pinned is refused, whoever says that it is.
 *
 * @throws {Error} When it cannot be had, or something else came.
 */
export async function fetchPinned(
  pinned: PinnedPackage,
  cacheDirectory: string,
  registry: string = registryUrl(),
): Promise<Uint8Array<ArrayBuffer>> {
  const { name, version, integrity } = pinned;
  const path = `${cacheDirectory}/${name.replace("/", "+")}-${version}.tgz`;
  try {
    const cached = await Deno.readFile(path);
    if (await hasIntegrity(cached, integrity)) return cached;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const response = await fetch(await tarballUrl(pinned, registry));
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`Cannot fetch ${name}@${version}: ${response.status}`);
  }
  const bytes = await response.bytes();
  if (!await hasIntegrity(bytes, integrity)) {
    throw new Error(
      `Cannot use ${name}@${version}: what came from ${registry} is not what ` +
        `is pinned (${integrity})`,
    );
  }
  await Deno.mkdir(cacheDirectory, { recursive: true });
  await Deno.writeFile(path, bytes);
  return bytes;
}

/** Of this version and no other. */
async function tarballUrl(
  { name, version }: PinnedPackage,
  registry: string,
): Promise<string> {
  const response = await fetch(registry + name.replace("/", "%2f"));
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(
      `Cannot find ${name}: the registry says ${response.status}`,
    );
  }
  const { versions } = await response.json() as {
    versions: Record<string, { dist: { tarball: string } }>;
  };
  if (Object.hasOwn(versions, version)) return versions[version]!.dist.tarball;
  throw new Error(
    `Cannot find ${name}@${version}: ${registry} does not have it, and no ` +
      "other version is taken in its place",
  );
}

/** Whether `bytes` have the hash that a `sha512-…` text names. */
export async function hasIntegrity(
  bytes: Uint8Array<ArrayBuffer>,
  integrity: string,
): Promise<boolean> {
  const wanted = /^sha512-(.+)$/.exec(integrity)?.[1];
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-512", bytes));
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
