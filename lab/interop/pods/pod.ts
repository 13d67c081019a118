/**
 * A container of a Pod as a kubelet starts it, by the real runc: from the root of
 * our image, with what its manifest says and nothing else. It ends with whoever
 * has started it, for its processes are in a namespace of their own.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { Child } from "../../../tests/support/program/child.ts";
import { findDebianProgram } from "../../../tests/support/program/debian.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import type { KubeCluster } from "../../peers/kube_cluster.ts";
import { groupMemory } from "../../peers/memory_group.ts";
import { mustEnd } from "../../../tests/support/program/run.ts";
import { bundleOf } from "./bundle.ts";
import { imageConfig, makeImageRoot } from "./image_root.ts";
import type { PodSpec } from "./manifest.ts";
import { makeAccount, makeVolume, type Place } from "./volumes.ts";

/** Where a Pod of these cases is started. */
export interface PodContext {
  readonly cluster: KubeCluster;
  readonly workspace: Workspace;
}

/** What is known of a Pod when it is on a node. */
export interface PodOptions {
  readonly name: string;
  readonly spec: PodSpec;
  readonly container?: string;
  readonly namespace: string;
  /** As {@linkcode Place.host}. */
  readonly host?: Readonly<Record<string, string>>;
  /** What `fieldRef` finds. */
  readonly fields?: Readonly<Record<string, string>>;
  /** What its ports have to be here, where other programs are. */
  readonly change?: (args: readonly string[]) => readonly string[];
  /** Names that are this machine. */
  readonly hosts?: readonly string[];
}

/** Made once. */
let root: Promise<string> | undefined;

let pods = 0;

/** See the module description. */
export class Pod implements AsyncDisposable {
  private constructor(
    readonly name: string,
    readonly child: Child,
    private readonly runc: readonly string[],
    private readonly group: string,
  ) {}

  static async start(
    { cluster, workspace }: PodContext,
    options: PodOptions,
  ): Promise<Pod> {
    const { name, spec, namespace, host = {}, fields = {} } = options;
    const folder = workspace.path(name);
    await Deno.mkdir(folder);
    root ??= makeRoot(workspace);
    const place: Place = { cluster, namespace, folder, host };
    const container = spec.containers.find((each) =>
      each.name === (options.container ?? spec.containers[0]!.name)
    )!;
    const volumes = new Map<string, string>();
    for (const volume of spec.volumes) {
      const isMounted = container.volumeMounts.some(({ name }) =>
        name === volume.name
      );
      if (!isMounted) continue;
      volumes.set(volume.name, await makeVolume(place, spec, volume));
    }
    const api = new URL(cluster.server);
    const env: Record<string, string> = {
      KUBERNETES_SERVICE_HOST: api.hostname,
      KUBERNETES_SERVICE_PORT: api.port,
    };
    for (const { name, value, valueFrom } of container.env ?? []) {
      env[name] = value ?? fields[valueFrom!.fieldRef.fieldPath]!;
    }
    const args = container.args.map((arg) =>
      arg.replaceAll(/\$\((\w+)\)/g, (_, name) => env[name]!)
    );
    const hosts = `${folder}/hosts`;
    const names = ["localhost", ...options.hosts ?? []].join(" ");
    await Deno.writeTextFile(hosts, `127.0.0.1 ${names}\n`);
    const mounts: Record<string, string> = {
      "/etc/hosts": hosts,
      "/etc/resolv.conf": "/etc/resolv.conf",
    };
    if (spec.automountServiceAccountToken !== false) {
      mounts["/var/run/secrets/kubernetes.io/serviceaccount"] =
        await makeAccount(place, spec);
    }
    const group = `tunnel-pod-${Deno.pid}-${++pods}`;
    const bundle = bundleOf({
      ...{ container, env, mounts, volumes, group, root: await root },
      ...{ image: await imageConfig(), args: options.change?.(args) ?? args },
    });
    await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(bundle));
    const { path } = await findDebianProgram("runc");
    const runc = [path, `--root=${folder}/runc`];
    const child = new Child({
      name,
      command: [
        ...["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
        ...[...runc, "run", `--bundle=${folder}`, group],
      ],
      logFile: workspace.path(`${name}.log`),
    });
    return new Pod(name, child, runc, group);
  }

  /** `kubectl exec` of it: what a command in it prints. */
  async exec(...words: readonly string[]): Promise<string> {
    return await this.#runc("exec", this.group, ...words);
  }

  /** Nothing was ended for want of memory. @returns What it had, in words. */
  async memory(): Promise<string> {
    const { kills, ...memory } = await groupMemory(this.group);
    assertEquals(kills, 0, `${this.name} had not enough memory`);
    return `${this.name} ${memory.peakMegabytes} of ${memory.limitMegabytes} MB`;
  }

  /** As a Pod is deleted. @returns Its exit code. */
  async end(): Promise<number> {
    await this.#runc("kill", this.group, "TERM");
    return (await this.child.ended).code;
  }

  async #runc(...words: readonly string[]): Promise<string> {
    const { pid } = this.child;
    const children = `/proc/${pid}/task/${pid}/children`;
    const inner = (await Deno.readTextFile(children)).trim();
    const enter = ["nsenter", `--target=${inner}`, "--pid", "--mount"];
    return await mustEnd([...enter, ...this.runc, ...words]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.child.hasEnded) {
      await this.#runc("delete", "--force", this.group).catch(() => {});
    }
    await this.child.stop("SIGKILL");
  }
}

async function makeRoot(workspace: Workspace): Promise<string> {
  const folder = workspace.path("image");
  await Deno.mkdir(folder);
  return await makeImageRoot(folder);
}
