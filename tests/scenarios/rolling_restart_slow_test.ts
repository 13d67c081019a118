/**
 * Two servers, one restarted after the other, as in an upgrade: what nodes have
 * beside their links (services through a proxy, connections through a relay)
 * goes on through the one that is there.
 *
 * @module
 */

import { assert } from "@std/assert";
import { Workspace } from "../support/program/workspace.ts";
import type { IdentityServer } from "../support/rigs/node_stage.ts";
import { NodeStage } from "../support/rigs/node_stage.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import { ask } from "../support/rigs/proxy_rig.ts";
import { XdsProbe } from "../support/xds/xds_probe.ts";
import { patience } from "../support/watch/patience.ts";

/** Between two connections of each kind. */
const PACE_MS = 20;

/** New connections, one after the other, until it is stopped. */
class Traffic {
  good = 0;
  slowestMs = 0;
  readonly bad: string[] = [];
  readonly #running: Promise<void>;
  #isStopped = false;

  constructor(name: string, connect: () => Promise<string>) {
    this.#running = this.#run(name, connect);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #run(name: string, connect: () => Promise<string>): Promise<void> {
    const startMs = performance.now();
    while (!this.#isStopped) {
      const beganMs = performance.now();
      const answer = await connect().catch((error) => String(error));
      this.slowestMs = Math.max(this.slowestMs, performance.now() - beganMs);
      if (answer === "edge-1: hello") this.good++;
      else {
        const atMs = Math.round(performance.now() - startMs);
        this.bad.push(`${name} at ${atMs} ms: ${answer}`);
      }
      await new Promise((resolve) => setTimeout(resolve, PACE_MS));
    }
  }
}

/** A client of discovery behind the relay, and how long it was without. */
class Follower {
  longestMs = 0;
  streams = 0;
  readonly #running: Promise<void>;
  #isStopped = false;

  constructor(port: number) {
    this.#running = this.#run(port);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Opens a stream as soon as the one before has ended, and asks again on it. */
  async #run(port: number): Promise<void> {
    let sinceMs = performance.now();
    while (!this.#isStopped) {
      using probe = await XdsProbe.plain(port);
      const stream = probe.sotw();
      const node = { id: "envoy-1", userAgentName: "envoy" };
      stream.send({ node, typeUrl: TYPE_URLS.cluster });
      try {
        const { nonce = "" } = await stream.next("cluster");
        if (this.streams++ > 0) {
          this.longestMs = Math.max(
            this.longestMs,
            performance.now() - sinceMs,
          );
        }
        stream.send({ typeUrl: TYPE_URLS.cluster, responseNonce: nonce });
        while (!this.#isStopped) await stream.next("cluster");
      } catch (error) {
        // It ends with its server, or says nothing for ten seconds.
        if (!String(error).includes("The stream ended")) continue;
        if (this.streams > 0) sinceMs = performance.now();
        await new Promise((resolve) => setTimeout(resolve, PACE_MS));
      }
    }
  }
}

/** To a service at a port of the proxy. */
async function throughProxy(port: number): Promise<string> {
  const conn = await Deno.connect({ hostname: "127.0.0.1", port });
  try {
    return await ask(conn, "hello");
  } finally {
    conn.close();
  }
}

/** To a port behind edge-1 by the relay for connections. */
async function throughRelay(port: number, target: number): Promise<string> {
  const conn = await Deno.connect({ hostname: "127.0.0.1", port });
  try {
    const head = `CONNECT 127.0.0.1:${target} HTTP/1.1\r\n` +
      "Tunnel-Node: id=edge-1\r\n\r\n";
    const answer = await ask(conn, head);
    if (!answer.startsWith("HTTP/1.1 200")) return answer;
    return await ask(conn, "hello");
  } finally {
    conn.close();
  }
}

/** Two servers of one identity, and what runs beside them. */
class Rig implements AsyncDisposable {
  readonly second: IdentityServer;
  readonly traffic: Traffic[] = [];
  follower: Follower | undefined;

  private constructor(readonly nodes: NodeStage) {
    this.second = nodes.addSibling();
  }

  static async open(): Promise<Rig> {
    const rig = new Rig(new NodeStage(await Workspace.make()));
    await rig.start(rig.first);
    await rig.start(rig.second);
    return rig;
  }

  get first(): IdentityServer {
    return this.nodes.server;
  }

  async start(stage: IdentityServer): Promise<void> {
    const flags = ["--discovery", "--server-count=2", "--v=2"];
    const socket = `${this.nodes.workspace.folder}/s2.sock`;
    if (stage === this.first) await stage.start(...flags, "--server-id=s1");
    else {
      await stage.start(
        ...[...flags, "--server-id=s2", `--uds-name=${socket}`],
        `--handover-socket=${socket}.handover`,
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.traffic) await one.stop();
    const isFollowed = this.follower?.stop();
    await this.nodes[Symbol.asyncDispose]();
    await isFollowed?.catch(() => {}); // Its relay is gone.
  }
}

/** `edge-1` announces a service, `edge-2` uses it by a proxy and a relay. */
async function startTraffic(rig: Rig): Promise<void> {
  const target = rig.nodes.echo("edge-1: ");
  for (const node of ["edge-1", "edge-2"]) await rig.nodes.join(node);
  rig.nodes.agent("edge-1", `--announce=web:80=127.0.0.1:${target}`);
  const { child: proxy, port } = await rig.nodes.proxy(
    "edge-2",
    ...["--connect-listen=127.0.0.1:0", "--xds-listen=127.0.0.1:0"],
  );
  const relaying = /connect="?127\.0\.0\.1:(\d+)/;
  const relay = Number((await proxy.untilPrinted(relaying))[1]);
  const telling = /xds="?127\.0\.0\.1:(\d+)/;
  const xds = Number((await proxy.untilPrinted(telling))[1]);
  for (const stage of [rig.first, rig.second]) {
    await stage.untilLinked("agent=edge-1");
  }
  rig.follower = new Follower(xds);
  rig.traffic.push(
    new Traffic("proxy", () => throughProxy(port)),
    new Traffic("relay", () => throughRelay(relay, target)),
  );
}

async function restartInTurn(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  await using rig = await Rig.open();
  await startTraffic(rig);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const restarts = [rig.second, rig.first, rig.second];
  for (const stage of restarts) {
    await stage.stop(signal);
    await rig.start(stage);
    await stage.untilLinked("agent=edge-1");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  for (const one of rig.traffic) await one.stop();
  const { longestMs, streams } = rig.follower!;
  assert(streams > 1, "its server was restarted");
  assert(longestMs < patience(2_000), `no discovery for ${longestMs} ms`);
  for (const { good, bad, slowestMs } of rig.traffic) {
    assert(slowestMs < patience(5_000), `one took ${slowestMs} ms`);
    // Who is killed takes along what it carries at that moment.
    const most = signal === "SIGTERM" ? 0 : restarts.length;
    assert(bad.length <= most, bad.join("\n"));
    assert(good > 50, `${good} connections`);
  }
}

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  Deno.test(
    `two servers are restarted in turn (${signal}): nodes go on through the other`,
    () => restartInTurn(signal),
  );
}
