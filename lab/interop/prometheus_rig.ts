/**
 * A server with discovery, two agents, a proxy of services, callers that come
 * all the time, and a real Prometheus that scrapes all of them every second.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { debianCommand } from "../../tests/support/program/debian.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { IdentityServer } from "../../tests/support/rigs/node_stage.ts";
import { eventually } from "./kube_case.ts";

const DEPLOY = new URL("../../deploy/prometheus/", import.meta.url).pathname;

/** Seconds between scrapes: rates of ten seconds see several. */
const SCRAPE = "1s";

/** Calls of each kind, before anything is asked. */
const CALLS = 12;

/** One series that an expression gave. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [atSeconds: number, text: string];
}

/** See the module description. */
export class PrometheusRig implements AsyncDisposable {
  readonly #children: Child[] = [];
  readonly #ports = {
    prometheus: freePort(),
    health1: freePort(),
    health2: freePort(),
    proxy: freePort(),
    service: freePort(),
    forward: freePort(),
    refused: freePort(),
  };
  readonly #target: Deno.HttpServer<Deno.NetAddr>;
  readonly #identity: IdentityServer;
  readonly #catalog: string;

  private constructor(readonly workspace: Workspace) {
    this.#identity = new IdentityServer(workspace);
    this.#catalog = workspace.path("services.json");
    this.#target = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      () => new Response("hello"),
    );
  }

  static async start(workspace: Workspace): Promise<PrometheusRig> {
    const rig = new PrometheusRig(workspace);
    try {
      await rig.#programs();
      await rig.#prometheus();
      return rig;
    } catch (error) {
      await rig[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The series of an expression at this moment. */
  async query(expr: string): Promise<readonly Sample[]> {
    const url = `${this.#url}/api/v1/query?query=${encodeURIComponent(expr)}`;
    const { status, data, error } = await (await fetch(url)).json();
    if (status !== "success") throw new Error(`${expr}: ${error}`);
    return data.resultType === "scalar"
      ? [{ metric: {}, value: data.result }]
      : data.result;
  }

  /** Anything else of its API, below `/api/v1/`. */
  async get<T>(path: string): Promise<T> {
    const { status, data, error } =
      await (await fetch(`${this.#url}/api/v1/${path}`)).json();
    if (status !== "success") throw new Error(`${path}: ${error}`);
    return data as T;
  }

  /** Callers of every kind: good ones, refused ones, and those of a service. */
  async traffic(): Promise<void> {
    const { service, forward, refused } = this.#ports;
    for (let call = 0; call < CALLS; call++) {
      await Promise.all([
        fetchFrom(forward),
        fetchFrom(refused),
        fetchFrom(service),
      ]);
      await this.#writeCatalog(call);
      // Rates need several scrapes, with calls in between.
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }

  /** One agent goes, without a word. */
  async loseNode(): Promise<void> {
    const agent = this.#children.find(({ name }) => name === "node2")!;
    await agent.stop("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop("SIGKILL")));
    await this.#identity.child.stop("SIGKILL");
    await this.#target.shutdown();
  }

  get #url(): string {
    return `http://127.0.0.1:${this.#ports.prometheus}`;
  }

  #start(name: string, ...words: readonly string[]): Child {
    const child = new Child({
      name,
      command: words,
      logFile: this.workspace.path(`${name}.log`),
    });
    this.#children.push(child);
    return child;
  }

  async #programs(): Promise<void> {
    const { health1, health2, proxy, service, forward, refused } = this.#ports;
    const port = this.#target.addr.port;
    await this.#writeCatalog(0);
    await this.#identity.start(
      "--discovery",
      `--discovery-config=${this.#catalog}`,
    );
    const token = await this.#identity.createToken("--uses=9");
    const server = `127.0.0.1:${this.#identity.agentPort}`;
    const state = (node: string) => `${this.workspace.folder}/${node}`;
    const nodes = [["node1", health1], ["node2", health2]] as const;
    for (const [node, health] of nodes) {
      const agent = this.#start(
        node,
        ...ourCommand("agent"),
        `--server=${server}`,
        `--join=${token}`,
        `--node=${node}`,
        `--state-dir=${state(node)}`,
        `--health-server-port=${health}`,
        "--health-server-host=127.0.0.1",
        "--admin-server-port=0",
      );
      await agent.untilPrinted(/linked to server/);
    }
    const serving = this.#start(
      "proxy",
      ...ourCommand("proxy"),
      `--discovery=${server}`,
      `--state-dir=${state("node1")}`,
      `--admin-port=${proxy}`,
      `--discovery-state=${this.workspace.path("discovery")}`,
    );
    await serving.untilReady(`http://127.0.0.1:${proxy}/readyz`);
    const forwards = this.#start(
      "forward",
      ...ourCommand("forward"),
      `${forward}:127.0.0.1:${port}@node1`,
      `${refused}:127.0.0.1:9@node2`,
      `--server=unix:${this.#identity.socket}`,
    );
    await eventually(
      "the service and the forward answer",
      async () =>
        await fetchFrom(forward) && await fetchFrom(service) &&
        !forwards.hasEnded,
    );
  }

  /** @param version What differs is pushed to clients of discovery. */
  async #writeCatalog(version: number): Promise<void> {
    const { port } = this.#target.addr;
    const text = JSON.stringify({
      services: [{
        name: "hello",
        ports: [{ port: 80, listen: `127.0.0.1:${this.#ports.service}` }],
        endpoints: [{ address: "127.0.0.1", port, weight: 1 + version % 2 }],
      }],
    });
    // Whole at once: nobody reads half of it.
    await Deno.writeTextFile(`${this.#catalog}.new`, text);
    await Deno.rename(`${this.#catalog}.new`, this.#catalog);
  }

  /** With the files of `deploy/`, at the places where the programs are. */
  async #prometheus(): Promise<void> {
    const { prometheus, health1, health2, proxy } = this.#ports;
    const folder = this.workspace.path("prometheus");
    await Deno.mkdir(folder);
    for (const name of ["rules.yaml", "alerts.yaml"]) {
      await Deno.copyFile(`${DEPLOY}${name}`, `${folder}/${name}`);
    }
    const given = await Deno.readTextFile(`${DEPLOY}prometheus.yaml`);
    const targets = [
      ['"server.example:8092"', `"127.0.0.1:${this.#identity.healthPort}"`],
      [
        '"node1.example:8093"',
        `"127.0.0.1:${health1}", "127.0.0.1:${health2}"`,
      ],
      ['"127.0.0.1:8096"', `"127.0.0.1:${proxy}"`],
    ] as const;
    let text = given.replaceAll("15s", SCRAPE);
    for (const [from, to] of targets) {
      if (!text.includes(from)) throw new Error(`no ${from} in the config`);
      text = text.replace(from, to);
    }
    await Deno.writeTextFile(`${folder}/prometheus.yaml`, text);
    const program = this.#start(
      "prometheus",
      ...await debianCommand("prometheus"),
      `--config.file=${folder}/prometheus.yaml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${prometheus}`,
    );
    await program.untilReady(`${this.#url}/-/ready`);
    await eventually(
      "Prometheus has scraped all",
      async () => (await this.query("up == 1")).length === 4,
    );
  }
}

/** Over a connection of its own: a client that keeps it would dial once. */
async function fetchFrom(port: number): Promise<boolean> {
  try {
    using conn = await Deno.connect({ hostname: "127.0.0.1", port });
    await conn.write(new TextEncoder().encode("GET / HTTP/1.0\r\n\r\n"));
    return (await new Response(conn.readable).text()).endsWith("hello");
  } catch {
    return false; // The target refuses, as it is to.
  }
}
