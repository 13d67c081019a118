/**
 * Node proxies that are told services by a server's discovery, over the ports
 * that nodes and programs use.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { AdsSource, proxyNode } from "../../services/proxy/ads/ads_source.ts";
import type { CatalogPart } from "../../services/catalog/model/source.ts";
import type { Upstream } from "../../net/channel/upstream.ts";
import { plainUpstream } from "../../net/channel/server_upstream.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { DiscoveryMode } from "../../proto/xds/discovery.ts";
import { DiscoveryRig } from "../support/xds/discovery_rig.ts";
import {
  ask,
  deadPort,
  endpoints,
  ProxyRig,
  service,
} from "../support/rigs/proxy_rig.ts";

const KEY = "default/web";

/** A proxy that follows discovery over `upstream`. */
class Follower implements AsyncDisposable {
  readonly source: AdsSource;
  readonly rig: ProxyRig;

  constructor(
    upstream: Upstream,
    { mode = "delta" as DiscoveryMode, node = "node1/proxy", file = "" } = {},
  ) {
    this.source = new AdsSource({
      upstream,
      mode,
      node: proxyNode(node, ""),
      timers: systemTimers,
      random: () => 0,
      kept: file === "" ? undefined : { path: file, log: { ...LOG } },
    });
    this.rig = new ProxyRig({ sources: [this.source] });
  }

  get services(): readonly string[] {
    return [...this.rig.catalog.snapshot.services.keys()];
  }

  /** Resolves when the catalog is so. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await this.rig.log.next(/^The catalog has changed/);
  }

  /** What a client of a service is answered. */
  async ask(key: string, text = "hello"): Promise<string> {
    const conn = await this.rig.connect(key);
    try {
      return await ask(conn, text);
    } finally {
      conn.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
  }
}

const silent = () => {};
const LOG = {
  ...{ error: silent, warn: silent, info: silent, event: silent },
  ...{
    detail: silent,
    packet: silent,
    wantsPackets: false,
    wantsDetails: false,
  },
};

function plainTo(...ports: readonly number[]): Upstream {
  return plainUpstream(ports.map((port) => ({ host: "127.0.0.1", port })));
}

/** `web` at these ports of this machine. */
function web(...ports: readonly number[]): CatalogPart {
  return { services: [service("web")], endpoints: [endpoints("web", ports)] };
}

for (const mode of ["sotw", "delta"] as const) {
  Deno.test(`${mode}: a server that restarts under traffic costs no request, and no change`, async () => {
    await using backends = new ProxyRig();
    const port = deadPort();
    const listen = { hostname: "127.0.0.1", port };
    const part = web(backends.echo("old: "));
    await using proxy = new Follower(plainTo(port), { mode });
    const answers = new Map<string, number>();
    let isOver = false;
    const traffic = async () => {
      while (!isOver) {
        const answer = (await proxy.ask(KEY)).slice(0, 3);
        answers.set(answer, (answers.get(answer) ?? 0) + 1);
      }
    };
    let running: Promise<void>[];
    {
      await using _first = await DiscoveryRig.serving(part, {}, { listen });
      await proxy.rig.listening(KEY);
      running = Array.from({ length: 4 }, traffic);
      await proxy.rig.log.until(/^The catalog has changed/);
    }
    await proxy.rig.log.until(/^Cannot follow discovery: /);
    const before = proxy.rig.log.matching(/^The catalog has changed/).length;
    // It knows nothing yet: nobody is told that there is nothing.
    await using second = await DiscoveryRig.open({}, { listen });
    const { sink } = second.source;
    const back = proxy.rig.log.next(/^The source is followed again/);
    sink.set(part);
    sink.synced();
    await back;
    assertEquals(
      proxy.rig.log.matching(/^The catalog has changed/).length,
      before,
    );
    const changed = proxy.rig.log.next(/^The catalog has changed/);
    sink.add({ endpoints: [endpoints("web", [backends.echo("new: ")])] });
    await changed;
    assertEquals(await proxy.ask(KEY), "new: hello");
    isOver = true;
    // One request that failed would have thrown.
    await Promise.all(running);
    assertEquals([...answers.keys()].sort(), ["new", "old"]);
  });
}

Deno.test("a proxy starts without a server, and is put right by one that comes", async () => {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/state`;
  await using backends = new ProxyRig();
  const port = deadPort();
  const listen = { hostname: "127.0.0.1", port };
  const part: CatalogPart = {
    services: [service("web"), service("gone")],
    endpoints: [
      endpoints("web", [backends.echo("old: ")]),
      endpoints("gone", [backends.echo("gone: ")]),
    ],
  };
  {
    await using _server = await DiscoveryRig.serving(part, {}, { listen });
    await using proxy = new Follower(plainTo(port), { file });
    await proxy.rig.listening("default/gone");
  }
  await using proxy = new Follower(plainTo(port), { file });
  await proxy.rig.listening("default/gone");
  assertEquals(await proxy.ask("default/gone"), "gone: hello");
  assertEquals(await proxy.ask(KEY), "old: hello");
  assertMatch(proxy.source.status.recalledFrom!, /^\d{4}-/);
  await using _server = await DiscoveryRig.serving(
    web(backends.echo("new: ")),
    {},
    { listen },
  );
  await proxy.until(() => !proxy.services.includes("default/gone"));
  while (await proxy.ask(KEY) !== "new: hello") {
    await proxy.rig.log.next(/^The catalog has changed/);
  }
  assertEquals(proxy.services, [KEY]);
  await Deno.remove(folder, { recursive: true });
});
