import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { ConnectError } from "../../../net/dial/server_connect.ts";
import type {
  KubernetesNode,
  KubernetesService,
} from "../../../neighbours/kubernetes/objects.ts";
import {
  failure,
  FakeApiServer,
  plainClient,
} from "../../../tests/support/peers/fake_apiserver.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { Transcript } from "../../../tests/support/watch/transcript.ts";
import { CLOUD_NODES, ServiceDiscovery } from "./service_discovery.ts";

const SERVICES = "/api/v1/namespaces/kube-system/services";
const NAME = "x-tunnel-server-svc";

function balanced(ip: string, name = NAME): KubernetesService {
  return {
    metadata: { name, namespace: "kube-system" },
    spec: { type: "LoadBalancer", ports: [{ name: "tcp", port: 10262 }] },
    status: { loadBalancer: { ingress: [{ ip }] } },
  };
}

function onNodes(): KubernetesService {
  const ports = [{ name: "tcp", port: 10262, nodePort: 31008 }];
  return {
    metadata: { name: NAME, namespace: "kube-system" },
    spec: { type: "NodePort", ports },
  };
}

/** A discovery by a fake API server; what it said, as words. */
class Rig implements AsyncDisposable {
  readonly server = FakeApiServer.start();
  readonly timers = new FakeTimers();
  readonly said = new Transcript();
  readonly discovery: ServiceDiscovery;
  readonly #client = plainClient(this.server.url, this.timers);

  constructor() {
    this.discovery = new ServiceDiscovery({
      client: this.#client,
      namespace: "kube-system",
      name: NAME,
      portName: "tcp",
      isInside: false,
      timers: this.timers,
      random: () => 0,
      log: {
        event: (_message, { addresses } = {}) =>
          this.said.add(`moved ${addresses}`.replace(/ \d+$/, "")),
        warn: (message) => this.said.add(`warn ${message}`),
      },
    });
  }

  async hosts(): Promise<string[]> {
    return (await this.discovery.addresses()).map(({ host }) => host);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.discovery.stop();
    this.#client[Symbol.dispose]();
    await this.server[Symbol.asyncDispose]();
    assertEquals(this.timers.pendingCount, 0, "a timer is left");
  }
}

const away = () => failure(403, "Forbidden", "edge1 cannot get resource");

Deno.test("each link asks where servers are then", async () => {
  await using rig = new Rig();
  rig.server.put(SERVICES, balanced("203.0.113.1"));
  rig.server.put(SERVICES, balanced("203.0.113.9", "another"));
  assertEquals(await rig.hosts(), ["203.0.113.1"]);
  rig.server.put(SERVICES, balanced("203.0.113.2"));
  assertEquals(await rig.hosts(), ["203.0.113.2"]);
  assertEquals(rig.said.lines, ["moved 203.0.113.1", "moved 203.0.113.2"]);
});

Deno.test("a Service that changes is noticed at once, and not asked for again", async () => {
  await using rig = new Rig();
  rig.server.put(SERVICES, balanced("203.0.113.1"));
  rig.discovery.start();
  assertEquals(await rig.said.nth(1), "moved 203.0.113.1");
  await rig.server.nextWatch();
  rig.server.put(SERVICES, balanced("203.0.113.2"));
  assertEquals(await rig.said.nth(2), "moved 203.0.113.2");
  const before = rig.server.requests.length;
  assertEquals(await rig.hosts(), ["203.0.113.2"]);
  assertEquals(rig.server.requests.length, before);
});

Deno.test("an API server that is away leaves servers where they were", async () => {
  await using rig = new Rig();
  rig.server.failNext(away);
  const error = await assertRejects(() => rig.hosts(), ConnectError);
  assertStringIncludes(
    error.message,
    "Service kube-system/x-tunnel-server-svc cannot be read",
  );
  assertStringIncludes(error.message, "grant this user that verb");
  rig.server.put(SERVICES, balanced("203.0.113.1"));
  await rig.hosts();
  rig.server.failNext(away, away);
  assertEquals(await rig.hosts(), ["203.0.113.1"]);
  assertEquals(await rig.hosts(), ["203.0.113.1"]);
  assertStringIncludes(rig.said.lines[1]!, "looked for where they were");
  assertEquals(rig.said.lines.length, 2, "one warning for a row");
});

Deno.test("a Service that is deleted leaves servers where they were", async () => {
  await using rig = new Rig();
  await assertRejects(
    () => rig.hosts(),
    ConnectError,
    "there is no Service kube-system/x-tunnel-server-svc; make it",
  );
  rig.server.put(SERVICES, balanced("203.0.113.1"));
  rig.discovery.start();
  await rig.said.nth(1);
  await rig.server.nextWatch();
  rig.server.remove(SERVICES, NAME);
  assertStringIncludes(await rig.said.nth(2), "there is no Service");
  assertEquals(await rig.hosts(), ["203.0.113.1"]);
});

Deno.test("nodes are asked for when the Service is on their ports", async () => {
  await using rig = new Rig();
  rig.server.put(SERVICES, onNodes());
  await assertRejects(
    () => rig.hosts(),
    ConnectError,
    `there are no nodes with ${CLOUD_NODES}`,
  );
  const status = { addresses: [{ type: "InternalIP", address: "10.0.0.5" }] };
  const node: KubernetesNode = { metadata: { name: "cloud1" }, status };
  rig.server.put("/api/v1/nodes", node);
  assertEquals(await rig.hosts(), ["10.0.0.5"]);
  const { query } = rig.server.requests.at(-1)!;
  assertEquals(query.get("labelSelector"), CLOUD_NODES);
});

Deno.test("a node that may not list nodes is told so", async () => {
  await using rig = new Rig();
  rig.server.put(SERVICES, onNodes());
  const found = () => Response.json(onNodes());
  rig.server.failNext(found, away);
  await assertRejects(
    () => rig.hosts(),
    ConnectError,
    "nodes cannot be listed: Cannot GET /api/v1/nodes",
  );
});

Deno.test("who may not watch looks for each link", async () => {
  await using rig = new Rig();
  rig.server.put(SERVICES, balanced("203.0.113.1"));
  rig.server.failNext(away);
  rig.discovery.start();
  assertStringIncludes(await rig.said.nth(1), "it is looked at for each link");
  assertEquals(await rig.hosts(), ["203.0.113.1"]);
});
