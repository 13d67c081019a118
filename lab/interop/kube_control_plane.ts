/**
 * A kube-apiserver whose EgressSelector leads to a gateway of ours, and what
 * manifests say of programs beside it, in the places that a test has.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { parse } from "../../platform/documents/yaml.ts";
import { Child } from "../../tests/support/program/child.ts";
import type { StandInKubelet } from "../../tests/support/peers/kubelet.ts";
import { KubeCluster } from "../peers/kube_cluster.ts";
import { type KubeContext } from "./kube_case.ts";
import { startKubelet } from "./kube_kubelet.ts";
import type { Manifest, PodSpec } from "./pods/manifest.ts";

/** A kube-apiserver behind a gateway, and a kubelet that only agents reach. */
export class ControlPlane implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  private constructor(
    /** Its cluster is this case's own. */
    readonly context: KubeContext,
    /** Where kube-apiserver asks: a socket in what a host has as /run/tunnel. */
    readonly sockets: string,
  ) {}

  static async start(
    { workspace }: KubeContext,
    config: string,
  ): Promise<ControlPlane> {
    const folder = workspace.path("cluster");
    await Deno.mkdir(folder);
    const sockets = workspace.path("run");
    await Deno.mkdir(sockets, { mode: 0o755 });
    const file = `${folder}/egress.yaml`;
    await Deno.writeTextFile(
      file,
      config.replaceAll("/run/tunnel/", `${sockets}/`),
    );
    const cluster = await KubeCluster.start(folder, {
      flags: [`--egress-selector-config-file=${file}`],
      controllerManager: true,
    });
    const plane = new ControlPlane({ cluster, workspace }, sockets);
    plane.#stack.use(cluster);
    return plane;
  }

  /** Programs beside the cluster that all cases share, which asks none of them. */
  static over(context: KubeContext): ControlPlane {
    return new ControlPlane(context, "");
  }

  get socket(): string {
    return `${this.sockets}/egress.sock`;
  }

  /** Ends with the case. */
  own<Thing extends AsyncDisposable>(thing: Thing): Thing {
    return this.#stack.use(thing);
  }

  /** A node with a pod whose log is there. */
  async startKubelet(): Promise<StandInKubelet> {
    return this.#stack.use(await startKubelet(this.context.cluster));
  }

  /** A program that ends with the case. */
  run(name: string, command: readonly string[]): Child {
    const logFile = this.context.workspace.path(`${name}.log`);
    const child = new Child({ name, command, logFile });
    this.#stack.defer(() => child.stop("SIGKILL"));
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/**
 * Flags with what a machine would have in their places.
 *
 * @param places By flag; each must be there.
 */
export function placed(
  flags: readonly string[],
  places: Readonly<Record<string, string | number>>,
): readonly string[] {
  const rest = new Map(Object.entries(places));
  const found = flags.map((flag) => {
    const name = flag.split("=", 1)[0]!;
    const value = rest.get(name);
    rest.delete(name);
    return value === undefined ? flag : `${name}=${value}`;
  });
  assertEquals([...rest.keys()], [], "flags that the manifest has not got");
  return found;
}

/** The Pods that a text of manifests has. */
export function podsIn(text: string): readonly PodSpec[] {
  return text.split(/^---\n/m).flatMap((each) => {
    const manifest = parse(each) as Manifest | null;
    const spec = manifest?.spec?.template?.spec ?? manifest?.spec;
    return spec?.containers === undefined ? [] : [spec];
  });
}
