/**
 * Where the documents' lines are run: a hub, which is the machine of the server
 * and of those who ask it, and a node. Both have private folders; a page finds
 * them as if nothing had ever run there.
 *
 * The hub's namespaces are this process's own ({@linkcode enterHub}), so that
 * peers that listen on loopback are the hub's as well.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { ThrowawayCa } from "../../tests/support/certificates/throwaway_ca.ts";
import { Machine } from "./machine.ts";

/** The hub is both, as some pages have two servers or members of etcd. */
const HUB = ["10.0.0.1", "10.0.0.2"] as const;
const NODE = "10.0.0.7";

const HOSTS = `127.0.0.1 localhost
::1 localhost
10.0.0.1 tunnel.example edge.example server hub
10.0.0.2 b.example c.example
10.0.0.7 node1 edge-7 edge-1
`;

/** Set for the process that is inside. */
const INSIDE = "TUNNEL_DOCS_INSIDE";

/**
 * Runs this program again in namespaces of its own, unless it is there already.
 *
 * @returns Its exit code; `undefined`: we are inside.
 */
export async function enterHub(script: string): Promise<number | undefined> {
  if (Deno.env.get(INSIDE) === "yes") return undefined;
  const { code } = await new Deno.Command("unshare", {
    args: [
      ...["--net", "--mount", "--uts", Deno.execPath(), "run", "--allow-all"],
      ...["--unstable-net", "--quiet", script, ...Deno.args],
    ],
    env: { [INSIDE]: "yes" },
  }).spawn().status;
  return code;
}

/** See the module description. */
export class DocsStage implements AsyncDisposable {
  private constructor(
    readonly hub: Machine,
    readonly node: Machine,
    /** Signs what pages take for granted; each machine has it as `ca.crt`. */
    readonly authority: ThrowawayCa,
    readonly folder: string,
    readonly holder: Child,
  ) {}

  /** @param program The words before a subcommand. */
  static async open(program: readonly string[]): Promise<DocsStage> {
    const folder = await Deno.makeTempDir({ prefix: "tunnel-docs-" });
    const bin = `${folder}/bin`;
    await Deno.mkdir(bin);
    await script(`${bin}/tunnel`, `exec ${program.join(" ")} "$@"`);
    // We are root already.
    await script(`${bin}/sudo`, 'exec "$@"');
    const holder = new Child({
      name: "the node",
      command: [
        ...["unshare", "--net", "--mount", "--uts", "sh", "-c"],
        "echo up; exec sleep infinity",
      ],
      logFile: `${folder}/node.log`,
    });
    await holder.untilPrinted(/up/);
    const into = ["nsenter", `--target=${holder.pid}`, "-n", "-m", "-u", "--"];
    const hub = new Machine(`${folder}/hub`, bin);
    const node = new Machine(`${folder}/node`, bin, into);
    for (const machine of [hub, node]) await Deno.mkdir(machine.folder);
    const authority = await ThrowawayCa.create();
    const stage = new DocsStage(hub, node, authority, folder, holder);
    await stage.#connect();
    await stage.clear();
    return stage;
  }

  /** As before the first line of a page. */
  async clear(): Promise<void> {
    await this.node.stop();
    await this.hub.stop();
    for (const machine of [this.hub, this.node]) {
      await machine.must(`
        rm -rf ./* /var/lib/tunnel /run/* /etc/tunnel /etc/kubernetes
        mkdir -p /etc/kubernetes /etc/tunnel /run/tunnel
        cat >/etc/hosts <<'END'\n${HOSTS}END
        : >/etc/resolv.conf`);
      await machine.write("ca.crt", this.authority.cert);
    }
  }

  /** A certificate of `ca.crt` and its key, as `NAME.crt` and `NAME.key`. */
  async issue(
    machine: Machine,
    name: string,
    usage: "server" | "client" = "client",
    names: readonly string[] = [],
  ): Promise<void> {
    const { cert, key } = await this.authority.issue({
      commonName: name,
      usage,
      names,
    });
    await machine.write(`${name}.crt`, cert);
    await machine.write(`${name}.key`, key);
  }

  /** Something that answers on these ports, whatever it is asked. */
  async answer(machine: Machine, ...addresses: string[]): Promise<void> {
    const target = new URL("target.ts", import.meta.url).pathname;
    await machine.start(
      `${Deno.execPath()} run --quiet --allow-net ${target} ` +
        addresses.join(" "),
      /answering/,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.node.stop();
    await this.hub.stop();
    await this.holder.stop("SIGKILL");
    await Deno.remove(this.folder, { recursive: true });
  }

  /** Networks, and folders that are seen inside alone. */
  async #connect(): Promise<void> {
    const { hub, node, holder } = this;
    for (const machine of [hub, node]) {
      const etc = `${machine.folder}-etc`;
      await machine.must(`
        mount --make-rprivate /
        ip link set lo up
        mount -t tmpfs none /var/lib
        mount -t tmpfs none /run
        cp -a /etc '${etc}' && mount --bind '${etc}' /etc
        umount -q /etc/hosts /etc/resolv.conf
        rm -f /etc/hosts /etc/resolv.conf`);
    }
    await hub.must(`
      ip link add cable type veth peer name cable netns ${holder.pid}
      ${HUB.map((host) => `ip addr add ${host}/24 dev cable`).join("\n")}
      ip link set cable up
      hostname hub`);
    await node.must(`
      ip addr add ${NODE}/24 dev cable
      ip link set cable up
      hostname node1`);
  }
}

async function script(path: string, text: string): Promise<void> {
  await Deno.writeTextFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
}
