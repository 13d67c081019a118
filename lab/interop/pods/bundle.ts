/**
 * What containerd gives to runc for a container of a Pod: its user, rights,
 * mounts and limits. Its network is the machine's, where the cluster is.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { bytesOf, type Container } from "./manifest.ts";
import type { ImageConfig } from "./image_root.ts";

/** What is said once more than in the manifest. */
export interface BundleParts {
  readonly container: Container;
  readonly image: ImageConfig;
  readonly root: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Folders and files by where they are mounted, besides the manifest's. */
  readonly mounts: Readonly<Record<string, string>>;
  /** Folders of volumes, by their names. */
  readonly volumes: ReadonlyMap<string, string>;
  /** Of control groups. */
  readonly group: string;
}

const PATH =
  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const SAFE = ["nosuid", "noexec", "nodev"];

/** What is mounted into every container. */
const MOUNTS = [
  ["proc", "proc", []],
  ["dev", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]],
  ["dev/shm", "tmpfs", [...SAFE, "mode=1777", "size=65536k"]],
  ["sys", "sysfs", [...SAFE, "ro"]],
  ["sys/fs/cgroup", "cgroup", [...SAFE, "relatime", "ro"]],
] as const;

/** Of runc's `config.json`. */
export function bundleOf(parts: BundleParts): object {
  const { container, image, root, args, env, mounts, volumes, group } = parts;
  const { securityContext: own = {}, resources: { limits } = {} } = container;
  const uid = own.runAsUser ?? image.uid;
  // What ours are meant to have; another one would need other rights here.
  assertEquals(own.capabilities?.drop, ["ALL"], container.name);
  assertEquals(own.allowPrivilegeEscalation, false, container.name);
  const bound = [
    ...Object.entries(mounts).map(([to, from]) => [to, from, true] as const),
    ...container.volumeMounts.map(({ name, mountPath, readOnly = false }) =>
      [mountPath, volumes.get(name)!, readOnly] as const
    ),
  ];
  const { cpu } = limits ?? {};
  return {
    ociVersion: "1.0.2",
    process: {
      user: { uid, gid: uid },
      args: [...container.command ?? image.entrypoint, ...args],
      env: [
        PATH,
        ...image.env,
        ...Object.entries(env).map((pair) => pair.join("=")),
      ],
      cwd: "/",
      capabilities: {},
      noNewPrivileges: true,
    },
    root: { path: root, readonly: own.readOnlyRootFilesystem === true },
    mounts: [
      ...MOUNTS.map(([to, type, options]) => ({
        ...{ destination: `/${to}`, type, source: type, options },
      })),
      ...bound.map(([destination, source, isReadOnly]) => ({
        ...{ destination, source, type: "bind" },
        options: ["rbind", "rprivate", isReadOnly ? "ro" : "rw"],
      })),
    ],
    linux: {
      namespaces: ["pid", "mount", "ipc"].map((type) => ({ type })),
      cgroupsPath: `/${group}`,
      resources: {
        memory: { limit: bytesOf(limits!.memory!) },
        ...cpu === undefined
          ? {}
          : { cpu: { quota: Number(cpu) * 100_000, period: 100_000 } },
      },
    },
  };
}
