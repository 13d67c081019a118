/**
 * Where the servers of a stage keep what they share: a directory that may be
 * full, a real etcd or a real kube-apiserver, each with something in front of it
 * that can take it away.
 *
 * @module
 */

import { mustEnd } from "../../tests/support/program/run.ts";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { KubeCluster } from "../peers/kube_cluster.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { CuttableLine } from "../../tests/support/peers/cuttable_line.ts";
import { ApiFront } from "./api_front.ts";
import { HOME_ADDRESS } from "./network.ts";
import type { StateKind } from "./topology.ts";

/** Enough for the identity of a small tunnel, and soon full. */
const DIRECTORY_SIZE = "8m";

const NAMESPACE = "tunnel";
const ACCOUNT = "server";

/** What a server may do: all that it keeps, in its own namespace. */
const ROLE_VERBS = "get,list,watch,create,update,patch,delete";
const ROLE_RESOURCES = "leases.coordination.k8s.io,secrets";

/** Parts of a store, as far as its kind has them. */
interface Parts {
  readonly workspace?: Workspace;
  readonly etcd?: EtcdCluster;
  /** In front of etcd. */
  readonly line?: CuttableLine;
  readonly cluster?: KubeCluster;
  readonly api?: ApiFront;
  readonly kubeconfig?: string;
}

/** See the module description. */
export class StateStore implements AsyncDisposable {
  private constructor(
    readonly kind: StateKind,
    /** Of servers that share a directory. */
    readonly folder: string,
    readonly parts: Parts,
  ) {}

  static async open(kind: StateKind, folder: string): Promise<StateStore> {
    const shared = `${folder}/state`;
    await Deno.mkdir(shared, { recursive: true });
    await mustEnd([
      ...["mount", "-t", "tmpfs", "-o", `size=${DIRECTORY_SIZE},mode=0700`],
      ...["none", shared],
    ]);
    const parts = kind === "etcd"
      ? await startEtcd()
      : kind === "kubernetes" || kind === "leases"
      ? await startKubernetes(folder)
      : {};
    return new StateStore(kind, shared, parts);
  }

  /** Flags by which a server, or a command, finds the state. */
  stateFlags(server: string): readonly string[] {
    const shared = `--state-dir=${this.folder}`;
    const own = `--state-dir=${this.folder}/${server}`;
    const place = this.#place;
    return place === undefined
      ? [shared]
      : [own, `--state=${place}`, "--state-key-file=none", ...this.#access];
  }

  /** What servers publish themselves by, besides. */
  get serverFlags(): readonly string[] {
    return this.kind === "leases"
      ? ["--enable-lease-controller", ...this.#leases]
      : [];
  }

  get agentFlags(): readonly string[] {
    return this.kind === "leases"
      ? ["--count-server-leases", ...this.#leases]
      : [];
  }

  /**
   * Takes all room that is left in the directory, also what was freed since the
   * last time, or gives it back.
   */
  async fill(isFull: boolean): Promise<void> {
    const file = `${this.folder}/filler`;
    if (!isFull) return await mustEnd(["rm", "-f", file]).then(() => {});
    // Ends with an error when there is no more room: that is what is wanted.
    await mustEnd(["sh", "-c", `cat /dev/zero >>"$0" || true`, file]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { workspace, etcd, line, cluster, api } = this.parts;
    line?.close();
    await api?.[Symbol.asyncDispose]();
    await etcd?.[Symbol.asyncDispose]();
    await cluster?.[Symbol.asyncDispose]();
    await workspace?.remove();
    await mustEnd(["umount", "--lazy", this.folder]);
  }

  get #place(): string | undefined {
    if (this.kind === "etcd") {
      return `etcd://${HOME_ADDRESS}:${this.parts.line!.port}`;
    }
    return this.kind === "kubernetes" ? `kubernetes:${NAMESPACE}` : undefined;
  }

  get #access(): readonly string[] {
    return this.kind === "kubernetes"
      ? [`--kubeconfig=${this.parts.kubeconfig}`]
      : [];
  }

  get #leases(): readonly string[] {
    return [
      `--lease-namespace=${NAMESPACE}`,
      `--kubeconfig=${this.parts.kubeconfig}`,
    ];
  }
}

async function startEtcd(): Promise<Parts> {
  const workspace = await Workspace.make();
  const etcd = await EtcdCluster.start(workspace);
  const line = new CuttableLine(etcd.members[0]!.port, HOME_ADDRESS);
  return { workspace, etcd, line };
}

async function startKubernetes(folder: string): Promise<Parts> {
  const home = `${folder}/kube`;
  await Deno.mkdir(home);
  const cluster = await KubeCluster.start(home);
  const inside = ["--namespace", NAMESPACE];
  await cluster.kubectl(["create", "namespace", NAMESPACE]);
  await cluster.kubectl([...inside, "create", "serviceaccount", ACCOUNT]);
  await cluster.kubectl([
    ...[...inside, "create", "role", ACCOUNT],
    ...[`--verb=${ROLE_VERBS}`, `--resource=${ROLE_RESOURCES}`],
  ]);
  await cluster.kubectl([
    ...[...inside, "create", "rolebinding", ACCOUNT, `--role=${ACCOUNT}`],
    `--serviceaccount=${NAMESPACE}:${ACCOUNT}`,
  ]);
  const token = await cluster.kubectl([...inside, "create", "token", ACCOUNT]);
  const api = await ApiFront.open(cluster);
  const kubeconfig = await cluster.kubeconfig("chaos", { token }, api.url);
  return { cluster, api, kubeconfig };
}
