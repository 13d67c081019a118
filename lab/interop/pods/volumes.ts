/**
 * The volumes of a Pod as a kubelet makes them: what they hold comes from the
 * API server, and owners and modes are those that Pods find.
 *
 * @module
 */

import type { KubeCluster } from "../../peers/kube_cluster.ts";
import type { PodSpec, Volume } from "./manifest.ts";

/** Of emptyDir. */
const OPEN = 0o777;

/** Of files and folders that nobody has said a mode of. */
const USUAL = 0o644;
const FOLDER = 0o755;

/** Where a Pod is. */
export interface Place {
  readonly cluster: KubeCluster;
  readonly namespace: string;
  /** For this Pod's own; empty. */
  readonly folder: string;
  /** What stands for a path of the host. */
  readonly host: Readonly<Record<string, string>>;
}

type Content = Readonly<Record<string, Uint8Array | string>>;

/** @returns Its folder. */
export async function makeVolume(
  place: Place,
  spec: PodSpec,
  volume: Volume,
): Promise<string> {
  const { name, hostPath, secret, configMap, projected } = volume;
  if (hostPath !== undefined) return place.host[hostPath.path]!;
  const path = `${place.folder}/${name}`;
  const get = async (kind: string, of: string): Promise<Content> => {
    const words = ["get", kind, of, `--namespace=${place.namespace}`];
    const text = await place.cluster.kubectl([...words, "--output=json"]);
    return JSON.parse(text).data;
  };
  if (secret !== undefined) {
    const data = await get("secret", secret.secretName);
    const items = secret.items ??
      Object.keys(data).map((key) => ({ key, path: key }));
    const decoded = items.map(({ key, path }) =>
      [path, Uint8Array.fromBase64(data[key] as string)] as const
    );
    const mode = secret.defaultMode ?? USUAL;
    return await filled(path, Object.fromEntries(decoded), mode);
  }
  if (configMap !== undefined) {
    return await filled(path, await get("configmap", configMap.name), USUAL);
  }
  if (projected !== undefined) {
    const files: Record<string, string> = {};
    for (const { serviceAccountToken } of projected.sources) {
      const { path, audience } = serviceAccountToken;
      files[path] = await tokenOf(place, spec, [`--audience=${audience}`]);
    }
    return await filled(path, files, USUAL);
  }
  await Deno.mkdir(path);
  await Deno.chmod(path, OPEN);
  return path;
}

/** What each Pod has that does not refuse it. */
export async function makeAccount(
  place: Place,
  spec: PodSpec,
): Promise<string> {
  return await filled(`${place.folder}/account`, {
    "token": await tokenOf(place, spec, []),
    "ca.crt": await Deno.readTextFile(place.cluster.caFile),
    "namespace": place.namespace,
  }, USUAL);
}

function tokenOf(
  { cluster, namespace }: Place,
  { serviceAccountName = "default" }: PodSpec,
  flags: readonly string[],
): Promise<string> {
  const create = ["create", "token", serviceAccountName];
  return cluster.kubectl([...create, `--namespace=${namespace}`, ...flags]);
}

async function filled(
  path: string,
  content: Content,
  mode: number,
): Promise<string> {
  await Deno.mkdir(path);
  await Deno.chmod(path, FOLDER);
  for (const [name, data] of Object.entries(content)) {
    const bytes = typeof data === "string"
      ? new TextEncoder().encode(data)
      : data;
    await Deno.writeFile(`${path}/${name}`, bytes);
    await Deno.chmod(`${path}/${name}`, mode);
  }
  return path;
}
