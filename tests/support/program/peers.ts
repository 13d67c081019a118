// deno-lint-ignore-file no-console -- also a command: `peers.ts [name…]` builds.
/**
 * Finds the real peers to test against, or builds them from their Go modules;
 * `peer_packages.ts` has those that are packages.
 *
 * They live in `$PEERS_BIN`, else in `tunnel-peers/bin` of the user's cache
 * folder, each beside a stamp of what it was built from. Without a Go toolchain
 * a program of that name on PATH will do.
 *
 * Usage: `deno task lab peers [name…]` builds all but rathole, or those named.
 *
 * @module
 */

import { isFile, peerFolder, PeerMissingError } from "./missing.ts";
import { PACKAGED } from "./peer_packages.ts";

export { PeerMissingError };

/** Where recipes, and sources of ours that are built, lie. */
const LAB = new URL("../../../lab/", import.meta.url);

/** A folder with a go.mod, and the package to build in it. */
interface Recipe {
  /** In the laboratory's. */
  readonly folder: string;
  /** What `go build` is given, an import path or a folder. */
  readonly package: string;
  readonly tags?: string;
  /** What else the linker is told; a stamped version has to agree with go.mod. */
  readonly linkerFlags?: string;
  /** Folders of further sources of ours that go into it. */
  readonly sources?: readonly string[];
}

const KONNECTIVITY = "sigs.k8s.io/apiserver-network-proxy/cmd";

/** A program of Kubernetes: it refuses to serve without a version of itself. */
function kubernetes(path: string): Recipe {
  const version = "k8s.io/component-base/version";
  const [release, major, minor] = ["v1.36.3", "1", "36"];
  return {
    folder: "peers/kube",
    package: path,
    linkerFlags: `-s -w -X ${version}.gitVersion=${release} ` +
      `-X ${version}.gitMajor=${major} -X ${version}.gitMinor=${minor} ` +
      `-X ${version}.gitTreeState=clean`,
  };
}

function yurttunnel(name: string): Recipe {
  const module = "github.com/openyurtio/openyurt";
  const folder = "peers/yurttunnel";
  return { folder, package: `${module}/cmd/${name}`, linkerFlags: "-s -w" };
}

const RECIPES = {
  "yurt-tunnel-server": yurttunnel("yurt-tunnel-server"),
  "yurt-tunnel-agent": yurttunnel("yurt-tunnel-agent"),
  "konnectivity-server": {
    folder: "peers/konnectivity",
    package: `${KONNECTIVITY}/server`,
  },
  "konnectivity-agent": {
    folder: "peers/konnectivity",
    package: `${KONNECTIVITY}/agent`,
  },
  "konnectivity-client": {
    folder: "peers/konnectivity",
    package: `${KONNECTIVITY}/test-client`,
  },
  "konnectivity-transfer": {
    folder: "peers/konnectivity",
    package: "./transfer",
  },
  "h2spec": {
    folder: "peers/h2spec",
    package: "github.com/summerwind/h2spec/cmd/h2spec",
  },
  "grpcurl": {
    folder: "peers/grpcurl",
    package: "github.com/fullstorydev/grpcurl/cmd/grpcurl",
  },
  // Without the dashboards, which a build from modules does not have.
  "frps": {
    folder: "peers/frp",
    package: "github.com/fatedier/frp/cmd/frps",
    tags: "noweb",
  },
  "frpc": {
    folder: "peers/frp",
    package: "github.com/fatedier/frp/cmd/frpc",
    tags: "noweb",
  },
  "loadgen": {
    folder: "bench",
    package: "./loadgen",
    sources: ["bench/load"],
  },
  "grpcgen": {
    folder: "peers/konnectivity",
    package: "./grpcgen",
    sources: ["bench/load"],
  },
  "kube-apiserver": kubernetes("k8s.io/kubernetes/cmd/kube-apiserver"),
  "etcd": kubernetes("go.etcd.io/etcd/server/v3"),
  "kubectl": kubernetes("k8s.io/kubernetes/cmd/kubectl"),
  "helm": {
    folder: "peers/helm",
    package: "helm.sh/helm/v3/cmd/helm",
    linkerFlags: "-s -w",
  },
  "kube-controller-manager": kubernetes(
    "k8s.io/kubernetes/cmd/kube-controller-manager",
  ),
  "kube-scheduler": kubernetes("k8s.io/kubernetes/cmd/kube-scheduler"),
  // What these need beside the others must not have all of them built again.
  "kubelet": {
    ...kubernetes("k8s.io/kubernetes/cmd/kubelet"),
    folder: "peers/kubelet",
  },
  "kube-proxy": {
    ...kubernetes("k8s.io/kubernetes/cmd/kube-proxy"),
    folder: "peers/kubelet",
  },
  "kubeadm": {
    ...kubernetes("k8s.io/kubernetes/cmd/kubeadm"),
    folder: "peers/kubeadm",
  },
  "linegen": { folder: "bench", package: "./linegen" },
  "grpc-interop": { folder: "peers/xds", package: "./interop" },
  "wan": { folder: "bench", package: "./wan" },
  "xds-gcp": { folder: "peers/xds", package: "./gcp" },
  "xds-goclient": { folder: "peers/xds", package: "./goclient" },
  "xds-backend": { folder: "peers/xds", package: "./backend" },
  "xds-adsload": { folder: "peers/xds", package: "./adsload" },
} satisfies Record<string, Recipe>;

export type PeerName = keyof typeof RECIPES;

export const PEER_NAMES = Object.keys(RECIPES) as readonly PeerName[];

/**
 * The path of a peer's executable, built first if it has to be.
 *
 * @throws {PeerMissingError} When there is no Go toolchain, or Go cannot build it.
 */
export async function findPeer(name: PeerName): Promise<string> {
  const recipe = RECIPES[name];
  const folder = await binFolder();
  const path = `${folder}/${name}`;
  const wanted = await stampOf(recipe);
  if (await isFile(path) && await readIfThere(`${path}.stamp`) === wanted) {
    return path;
  }
  if (await onPath("go") === undefined) {
    const elsewhere = await onPath(name);
    if (elsewhere !== undefined) return elsewhere;
    throw new PeerMissingError(
      `Cannot find ${name}: it is neither in ${folder} nor on PATH, and there is no Go toolchain to build it`,
    );
  }
  await build(name, recipe, path);
  await Deno.writeTextFile(`${path}.stamp`, wanted);
  return path;
}

async function build(
  name: string,
  recipe: Recipe,
  path: string,
): Promise<void> {
  console.error(`building ${name} (first time: some minutes)`);
  const fresh = `${path}.${crypto.randomUUID()}`;
  const { success, stderr } = await new Deno.Command("go", {
    args: [
      "build",
      "-p",
      "2",
      "-mod=readonly",
      "-trimpath",
      ...(recipe.tags === undefined ? [] : [`-tags=${recipe.tags}`]),
      ...(recipe.linkerFlags === undefined
        ? []
        : ["-ldflags", recipe.linkerFlags]),
      "-o",
      fresh,
      recipe.package,
    ],
    cwd: new URL(recipe.folder, LAB).pathname,
    stderr: "piped",
  }).output();
  if (!success) {
    const said = new TextDecoder().decode(stderr).trim();
    throw new PeerMissingError(`Cannot build ${name}: ${said}`);
  }
  // Renamed into place, so that nobody ever starts half of a program.
  await Deno.rename(fresh, path);
}

/** What a binary is made from: versions, sums and sources of ours. */
async function stampOf(recipe: Recipe): Promise<string> {
  const folder = new URL(`${recipe.folder}/`, LAB).pathname;
  const files = [`${folder}go.mod`, `${folder}go.sum`];
  if (recipe.package.startsWith("./")) {
    files.push(...await goFiles(`${folder}${recipe.package}`));
  }
  for (const source of recipe.sources ?? []) {
    files.push(...await goFiles(new URL(source, LAB).pathname));
  }
  const texts = await Promise.all(files.map(readIfThere));
  if (recipe.linkerFlags !== undefined) texts.push(recipe.linkerFlags);
  const bytes = new TextEncoder().encode(
    [recipe.package, ...texts].join("\0"),
  );
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return new Uint8Array(digest).toHex();
}

async function goFiles(folder: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    if (name.endsWith(".go")) names.push(name);
  }
  return names.sort().map((name) => `${folder}/${name}`);
}

async function binFolder(): Promise<string> {
  const folder = Deno.env.get("PEERS_BIN") ?? peerFolder("bin");
  await Deno.mkdir(folder, { recursive: true });
  return await Deno.realPath(folder);
}

async function onPath(program: string): Promise<string | undefined> {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    if (await isFile(`${folder}/${program}`)) return `${folder}/${program}`;
  }
  return undefined;
}

async function readIfThere(path: string): Promise<string> {
  return await isFile(path) ? await Deno.readTextFile(path) : "";
}

if (import.meta.main) {
  const known = [...PEER_NAMES, ...Object.keys(PACKAGED)];
  // It takes minutes to build, and only a bench that names it wants it.
  const usual = known.filter((name) => name !== "rathole");
  for (const name of Deno.args.length > 0 ? Deno.args : usual) {
    if (!known.includes(name)) {
      console.error(`unknown peer '${name}', known: ${known.join(" ")}`);
      Deno.exit(2);
    }
    console.log(
      name in PACKAGED
        ? await PACKAGED[name as keyof typeof PACKAGED]()
        : await findPeer(name as PeerName),
    );
  }
}
