/**
 * Finds peers that come with the system, or unpacks Debian's packages of them
 * into the user's cache folder. Nothing is installed and no service started.
 *
 * @module
 */

import { isFile, madeWhole, peerFolder, runOrMiss } from "./missing.ts";

interface Recipe {
  /** Inside the packages. */
  readonly path: string;
  readonly packages: readonly string[];
}

/** Libraries of the tools of name servers. */
const DNSTAP = ["libfstrm0", "libprotobuf-c1"];

/** The server is a name of one of the tools. */
const REDIS = [
  ...["redis-server", "redis-tools", "libhiredis0.14", "libjemalloc2"],
  ...["liblua5.1-0", "liblzf1", "lua-bitop", "lua-cjson"],
];

/** Machines differ in where Debian puts libraries. */
const LIBRARIES = `usr/lib/${Deno.build.arch}-linux-gnu`;

const CONTAINERD = ["containerd", "runc"];

const RECIPES = {
  "libfaketime": {
    path: `${LIBRARIES}/faketime/libfaketimeMT.so.1`,
    packages: ["libfaketime"],
  },
  "nginx": {
    path: "usr/sbin/nginx",
    packages: ["nginx", "libnginx-mod-stream"],
  },
  "prometheus": { path: "usr/bin/prometheus", packages: ["prometheus"] },
  "promtool": { path: "usr/bin/promtool", packages: ["prometheus"] },
  "nft": {
    path: "usr/sbin/nft",
    packages: [
      ...["nftables", "libnftables1", "libjansson4", "libnftnl11"],
      ...["libxtables12", "libedit2", "libbsd0", "libmnl0"],
    ],
  },
  "conntrack": {
    path: "usr/sbin/conntrack",
    packages: [
      ...["conntrack", "libnetfilter-conntrack3", "libnfnetlink0", "libmnl0"],
    ],
  },
  "dig": {
    path: "usr/bin/dig",
    packages: [
      ...["bind9-dnsutils", "bind9-libs", ...DNSTAP],
      ...["libjemalloc2", "liblmdb0", "libmaxminddb0"],
    ],
  },
  "containerd": { path: "usr/bin/containerd", packages: CONTAINERD },
  "containerd-shim-runc-v2": {
    path: "usr/bin/containerd-shim-runc-v2",
    packages: CONTAINERD,
  },
  "ctr": { path: "usr/bin/ctr", packages: CONTAINERD },
  "runc": { path: "usr/sbin/runc", packages: CONTAINERD },
  "ptp": {
    path: "usr/lib/cni/ptp",
    packages: ["containernetworking-plugins"],
  },
  "busybox": { path: "bin/busybox", packages: ["busybox-static"] },
  "redis-server": { path: "usr/bin/redis-server", packages: REDIS },
  "redis-cli": { path: "usr/bin/redis-cli", packages: REDIS },
} satisfies Record<string, Recipe>;

export type DebianName = keyof typeof RECIPES;

export interface DebianProgram {
  readonly path: string;
  /** Where its packages were unpacked; empty when the system has it. */
  readonly root: string;
  /** Folders of libraries that came with it, for `LD_LIBRARY_PATH`. */
  readonly libraries: readonly string[];
}

/**
 * The words that start a program, with the libraries that came along.
 *
 * @throws {PeerMissingError} As {@linkcode findDebianProgram} does.
 */
export async function debianCommand(name: DebianName): Promise<string[]> {
  const { path, libraries } = await findDebianProgram(name);
  if (libraries.length === 0) return [path];
  return ["env", `LD_LIBRARY_PATH=${libraries.join(":")}`, path];
}

/**
 * The path of a library that programs are started with (LD_PRELOAD).
 *
 * @throws {PeerMissingError} As {@linkcode findDebianProgram} does.
 */
export async function debianLibrary(name: "libfaketime"): Promise<string> {
  const { path } = RECIPES[name];
  if (await isFile(`/${path}`)) return `/${path}`;
  return (await findDebianProgram(name)).path;
}

const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/local/sbin"];

/**
 * A program of the system, or of an unpacked package.
 *
 * @throws {PeerMissingError} When neither is to be had; the message says what
 * to install.
 */
export async function findDebianProgram(
  name: DebianName,
): Promise<DebianProgram> {
  const folders = (Deno.env.get("PATH") ?? "").split(":");
  for (const folder of [...folders, ...SYSTEM_FOLDERS]) {
    const path = `${folder}/${name}`;
    if (await isFile(path)) return { path, root: "", libraries: [] };
  }
  const recipe = RECIPES[name];
  const root = peerFolder(`debian/${recipe.packages.join("+")}`);
  const path = `${root}/${recipe.path}`;
  await unpack(name, recipe, root);
  const libraries = [
    ...await machineFolders(`${root}/lib`),
    ...await machineFolders(`${root}/usr/lib`),
  ];
  return { path, root, libraries };
}

async function unpack(name: string, recipe: Recipe, root: string) {
  const peer = `${name} (apt-get install ${recipe.packages.join(" ")})`;
  const run = (cwd: string, ...command: readonly string[]) =>
    runOrMiss(peer, command, cwd);
  await madeWhole(root, async (fresh) => {
    await run(fresh, "apt-get", "download", ...recipe.packages);
    for await (const { name: file } of Deno.readDir(fresh)) {
      if (!file.endsWith(".deb")) continue;
      await run(fresh, "dpkg-deb", "-x", file, ".");
      await Deno.remove(`${fresh}/${file}`);
    }
  });
}

/** Debian's libraries are in `lib/x86_64-linux-gnu` and its like. */
async function machineFolders(folder: string): Promise<string[]> {
  const found: string[] = [];
  try {
    for await (const { name } of Deno.readDir(folder)) {
      if (name.includes("-linux-gnu")) found.push(`${folder}/${name}`);
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return found;
}
