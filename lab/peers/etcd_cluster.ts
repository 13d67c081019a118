/**
 * A real etcd cluster on loopback, of one member or several, that a test can
 * take apart: kill members, start them again, compact, ask for users.
 *
 * What a test wants to know or to change apart from our own client goes by
 * etcd's JSON gateway, so that both are not wrong in the same way.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { patience } from "../../tests/support/watch/patience.ts";

/** See the module description. */
export interface EtcdConfig {
  readonly members?: number;
  /** TLS, and certificates of clients are asked for. */
  readonly withTls?: boolean;
}

/** One member; `child` changes when it is started again. */
interface Member {
  readonly name: string;
  readonly port: number;
  readonly peerPort: number;
  child: Child | undefined;
}

/** A key as the gateway shows it. */
export interface GatewayKey {
  readonly key: string;
  readonly value: string;
  readonly lease: string;
}

/** Time until a cluster answers with a leader. */
const READY_MS = 30_000;

/** See the module description. */
export class EtcdCluster implements AsyncDisposable {
  readonly members: readonly Member[];
  readonly #workspace: Workspace;
  readonly #config: EtcdConfig;
  readonly #http: Deno.HttpClient | undefined;
  /** For the gateway, once users are asked for. */
  #token = "";
  #hasUsers = false;

  private constructor(
    workspace: Workspace,
    config: EtcdConfig,
    http: Deno.HttpClient | undefined,
  ) {
    this.#workspace = workspace;
    this.#config = config;
    this.#http = http;
    const folder = workspace.path("etcd");
    this.members = Array.from({ length: config.members ?? 1 }, (_, i) => ({
      name: `${folder}-${i}`,
      port: freePort(),
      peerPort: freePort(),
      child: undefined,
    }));
  }

  /** Starts all members, and waits until they have a leader. */
  static async start(
    workspace: Workspace,
    config: EtcdConfig = {},
  ): Promise<EtcdCluster> {
    const { ca, client } = workspace.certificates;
    const http = config.withTls
      ? Deno.createHttpClient({
        caCerts: [await Deno.readTextFile(ca)],
        cert: await Deno.readTextFile(client.cert),
        key: await Deno.readTextFile(client.key),
      })
      : undefined;
    const cluster = new EtcdCluster(workspace, config, http);
    await Promise.all(
      cluster.members.keys().map((i) => cluster.startMember(i)),
    );
    await cluster.ready();
    return cluster;
  }

  get urls(): readonly string[] {
    return this.members.map((member) => this.#url(member));
  }

  async startMember(index: number): Promise<void> {
    const member = this.members[index]!;
    const peer = ({ peerPort }: Member) => `http://127.0.0.1:${peerPort}`;
    const client = this.#url(member);
    const { ca, server } = this.#workspace.certificates;
    member.child = new Child({
      name: `etcd ${index}`,
      logFile: `${member.name}.log`,
      command: [
        await findPeer("etcd"),
        `--name=${member.name}`,
        `--data-dir=${member.name}`,
        "--log-level=warn",
        "--unsafe-no-fsync",
        "--heartbeat-interval=50",
        "--election-timeout=500",
        `--listen-client-urls=${client}`,
        `--advertise-client-urls=${client}`,
        `--listen-peer-urls=${peer(member)}`,
        `--initial-advertise-peer-urls=${peer(member)}`,
        "--initial-cluster=" +
        this.members.map((it) => `${it.name}=${peer(it)}`).join(","),
        ...this.#config.withTls
          ? [
            `--cert-file=${server.cert}`,
            `--key-file=${server.key}`,
            `--trusted-ca-file=${ca}`,
            "--client-cert-auth",
          ]
          : [],
      ],
    });
  }

  async stopMember(
    index: number,
    signal: "SIGTERM" | "SIGKILL",
  ): Promise<void> {
    await this.members[index]!.child?.stop(signal);
  }

  /** Until there is a leader, without whom nothing is read or written. */
  async ready(): Promise<void> {
    const deadline = Date.now() + patience(READY_MS);
    for (;;) {
      try {
        // Members that were restarted know no tokens.
        if (this.#hasUsers) await this.#authenticate();
        await this.call("/v3/kv/range", { key: btoa("ready") });
        return;
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** All keys that begin with `prefix`, by the gateway. */
  async keys(prefix: string): Promise<readonly GatewayKey[]> {
    const { kvs = [] } = await this.call("/v3/kv/range", {
      key: btoa(prefix),
      range_end: btoa(prefix.slice(0, -1) + after(prefix.at(-1)!)),
    }) as { kvs?: { key: string; value: string; lease?: string }[] };
    return kvs.map(({ key, value, lease = "0" }) => ({
      key: atob(key),
      value: atob(value ?? ""),
      lease,
    }));
  }

  async put(key: string, value: string): Promise<void> {
    await this.call("/v3/kv/put", { key: btoa(key), value: btoa(value) });
  }

  async delete(key: string): Promise<void> {
    await this.call("/v3/kv/deleterange", { key: btoa(key) });
  }

  /** Forgets all that was before now. */
  async compact(): Promise<void> {
    const { header } = await this.call("/v3/kv/range", { key: btoa("x") }) as {
      header: { revision: string };
    };
    await this.call("/v3/kv/compaction", {
      revision: header.revision,
      physical: true,
    });
  }

  /** Asks for users from now on: `root` of the gateway, and these. */
  async enableAuth(
    users: readonly {
      readonly name: string;
      readonly password: string;
      readonly prefix: string;
    }[],
  ): Promise<void> {
    await this.#addUser("root", "root");
    await this.call("/v3/auth/user/grant", { user: "root", role: "root" });
    for (const { name, password, prefix } of users) {
      await this.#addUser(name, password);
      const key = btoa(prefix);
      const end = btoa(prefix.slice(0, -1) + after(prefix.at(-1)!));
      await this.call("/v3/auth/role/grant", {
        name,
        perm: { permType: "READWRITE", key, range_end: end },
      });
      await this.call("/v3/auth/user/grant", { user: name, role: name });
    }
    await this.call("/v3/auth/enable", {});
    this.#hasUsers = true;
    await this.#authenticate();
  }

  /** A token for the gateway. */
  async #authenticate(): Promise<void> {
    // etcd 3.4 refuses even this to who shows an old one.
    this.#token = "";
    const { token } = await this.call("/v3/auth/authenticate", {
      name: "root",
      password: "root",
    }) as { token: string };
    this.#token = token;
  }

  async #addUser(name: string, password: string): Promise<void> {
    await this.call("/v3/auth/user/add", { name, password });
    await this.call("/v3/auth/role/add", { name });
  }

  /** One request to the gateway of the first member that answers. */
  async call(path: string, body: unknown): Promise<unknown> {
    let last: unknown = new Error("no member of etcd runs");
    for (const member of this.members) {
      if (member.child === undefined || member.child.hasEnded) continue;
      try {
        const response = await fetch(`${this.#url(member)}${path}`, {
          method: "POST",
          body: JSON.stringify(body),
          signal: AbortSignal.timeout(5_000),
          ...this.#token === ""
            ? {}
            : { headers: { authorization: this.#token } },
          ...this.#http === undefined ? {} : { client: this.#http },
        });
        const text = await response.text();
        if (response.ok) return JSON.parse(text);
        last = new Error(`${path} answered ${response.status}: ${text}`);
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.members.map(({ child }) => child?.stop("SIGKILL")),
    );
    this.#http?.close();
  }

  #url({ port }: Member): string {
    return `${this.#config.withTls ? "https" : "http"}://127.0.0.1:${port}`;
  }
}

function after(letter: string): string {
  return String.fromCharCode(letter.charCodeAt(0) + 1);
}
