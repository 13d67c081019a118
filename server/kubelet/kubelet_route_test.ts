import { assertEquals, assertRejects } from "@std/assert";
import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  type KubeletRoute,
  kubeletRouteOf,
  LOOKUP_BELIEVED_MS,
  NodeLookups,
} from "./kubelet_route.ts";
import { MessageError } from "../../net/http1/refusal.ts";
import { requestHeadOf } from "../../tests/support/peers/http1_heads.ts";
import { kubeletRequestOf } from "./kubelet_request.ts";

/** An API server with one pod on one node. */
class FakeApi implements Disposable {
  readonly asked: string[] = [];
  readonly objects: Record<string, unknown> = {
    "/api/v1/namespaces/web/pods/nginx-0": { spec: { nodeName: "edge-1" } },
    "/api/v1/namespaces/web/pods/pending": { spec: {} },
    "/api/v1/nodes/edge-1": {
      status: {
        addresses: [
          { type: "Hostname", address: "edge-1" },
          { type: "InternalIP", address: "10.0.0.7" },
        ],
        daemonEndpoints: { kubeletEndpoint: { Port: 10350 } },
      },
    },
    "/api/v1/nodes/bare": {},
  };

  get<T>(path: string): Promise<T> {
    this.asked.push(path);
    const found = this.objects[path];
    if (found !== undefined) return Promise.resolve(found as T);
    const code = path.endsWith("/down") ? 0 : 404;
    return Promise.reject(new KubernetesError(code, "", `Cannot GET ${path}`));
  }

  [Symbol.dispose](): void {}
}

function route(
  path: string,
  headers: readonly string[],
  options: {
    lookups?: NodeLookups;
    ports?: readonly number[];
    serverName?: string;
    served?: readonly string[];
  } = {},
): Promise<KubeletRoute> {
  const request = kubeletRequestOf(
    requestHeadOf(`GET ${path} HTTP/1.1`, ...headers),
  );
  const { lookups, ports = [], serverName = "", served = [] } = options;
  return kubeletRouteOf(
    request,
    { serverName, localAddress: "10.0.0.1:10250" },
    {
      isServed: (host) => served.includes(host),
      localhostPorts: new Set(ports),
      ...(lookups === undefined ? {} : { lookups }),
    },
  );
}

const LOGS = "/containerLogs/web/nginx-0/main?follow=true";

Deno.test("without an API server the Host tells node and address", async () => {
  assertEquals(await route(LOGS, ["Host: edge-1:10250"]), {
    node: "edge-1",
    address: "edge-1:10250",
    names: ["edge-1"],
  });
  assertEquals(await route(LOGS, ["Host: [fd00::7]:10250"]), {
    node: "fd00::7",
    address: "[fd00::7]:10250",
    names: ["fd00::7"],
  });
});

Deno.test("the headers win over the Host, and the API server is not asked", async () => {
  const api = new FakeApi();
  const lookups = new NodeLookups(api, new FakeTimers());
  assertEquals(
    await route(LOGS, [
      "Host: server:10263",
      "X-Tunnel-Proxy-Host: edge-2:10250",
      "X-Tunnel-Proxy-Dest: 127.0.0.1:8088",
    ], { lookups }),
    { node: "edge-2", address: "127.0.0.1:8088", names: ["edge-2"] },
  );
  assertEquals(api.asked, []);
});

Deno.test("the API server tells a pod's node, and where its kubelet is", async () => {
  const api = new FakeApi();
  const timers = new FakeTimers();
  const lookups = new NodeLookups(api, timers);
  const wanted = {
    node: "edge-1",
    address: "10.0.0.7:10350",
    names: ["edge-1", "10.0.0.7"],
  };
  const ask = () => route(LOGS, ["Host: 192.0.2.1:10263"], { lookups });
  assertEquals(await ask(), wanted);
  assertEquals(await ask(), wanted);
  assertEquals(api.asked, [
    "/api/v1/namespaces/web/pods/nginx-0",
    "/api/v1/nodes/edge-1",
  ]);
  timers.advance(LOOKUP_BELIEVED_MS);
  await ask();
  assertEquals(api.asked.length, 4);
});

Deno.test("the API server tells a node's address, and the Host its port", async () => {
  const lookups = new NodeLookups(new FakeApi(), new FakeTimers());
  assertEquals(await route("/metrics", ["Host: edge-1:9100"], { lookups }), {
    node: "edge-1",
    address: "10.0.0.7:9100",
    names: ["edge-1", "10.0.0.7"],
  });
  assertEquals(
    (await route("/metrics", ["Host: bare:10250"], { lookups })).address,
    "bare:10250",
  );
  // An address is taken at its word.
  assertEquals(
    (await route("/metrics", ["Host: 10.9.9.9:10250"], { lookups })).address,
    "10.9.9.9:10250",
  );
});

Deno.test("ports of the list are dialed on the node's loopback, under the node's names", async () => {
  const at = (host: string) =>
    route("/pods", [`Host: ${host}:10250`], { ports: [10250] });
  assertEquals(await at("10.0.0.7"), {
    node: "10.0.0.7",
    address: "127.0.0.1:10250",
    names: ["10.0.0.7"],
  });
  assertEquals((await at("[fd00::7]")).address, "[::1]:10250");
  assertEquals((await at("edge-1")).address, "127.0.0.1:10250");
});

// deno-fmt-ignore: the columns are the point.
const NAMED: readonly [says: string, host: string, upgrade: string, serverName: string, wanted: string][] = [
  ["the Host of a node wins",                       "edge-1:10250",   "",          "edge-2",   "edge-1:10250"],
  ["the Host of none loses",                        "api.local:6443", "",          "edge-2",   "edge-2:10250"],
  ["kube-apiserver's SPDY has a Host of no account","edge-1:6443",    "SPDY/3.1",  "edge-2",   "edge-2:10250"],
  ["a WebSocket's Host is the caller's own",        "edge-1:10250",   "websocket", "edge-2",   "edge-1:10250"],
  ["our own name is no node's",                     "api.local:6443", "SPDY/3.1",  "tunnel-1", "api.local:6443"],
  ["without a name the Host is all there is",       "10.0.0.7:10250", "SPDY/3.1",  "",         "10.0.0.7:10250"],
];

for (const [says, host, upgrade, serverName, wanted] of NAMED) {
  Deno.test(`TLS may name the node: ${says}`, async () => {
    const { node, address, names } = await route("/exec/web/nginx-0/main", [
      `Host: ${host}`,
      ...(upgrade === "" ? [] : [`Upgrade: ${upgrade}`, "Connection: upgrade"]),
    ], { serverName, served: ["edge-1", "edge-2"] });
    const [name] = wanted.split(":");
    assertEquals([node, address, names], [name, wanted, [name]]);
  });
}

Deno.test("the API server tells the address of a node that TLS has named", async () => {
  const lookups = new NodeLookups(new FakeApi(), new FakeTimers());
  const options = { lookups, serverName: "edge-1", served: ["edge-1"] };
  const { node, address } = await route(
    "/metrics",
    ["Host: api:6443"],
    options,
  );
  assertEquals([node, address], ["edge-1", "10.0.0.7:10250"]);
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [name: string, status: number, path: string, ...headers: string[]][] = [
  ["a Host without a port",        400, "/pods", "Host: edge-1"],
  ["a Host with port 0",           400, "/pods", "Host: edge-1:0"],
  ["a Host with a port too large", 400, "/pods", "Host: edge-1:65536"],
  ["a Host with user information", 400, "/pods", "Host: a@edge-1:1"],
  ["a bare IPv6 address",          400, "/pods", "Host: fd00::7:10250"],
  ["brackets around a name",       400, "/pods", "Host: [edge]:10250"],
  ["a bad X-Tunnel-Proxy-Dest",    400, "/pods", "Host: a:1", "X-Tunnel-Proxy-Dest: /x"],
  ["two X-Tunnel-Proxy-Host",      400, "/pods", "Host: a:1", "X-Tunnel-Proxy-Host: a", "x-tunnel-proxy-host: b"],
  ["an unknown node",              404, "/pods", "Host: edge-9:10250"],
  ["an unknown pod",               404, "/exec/web/gone/main", "Host: edge-1:10250"],
  ["a pod without a node",         400, "/exec/web/pending/main", "Host: edge-1:10250"],
  ["an API server that is down",   503, "/exec/web/down", "Host: edge-1:10250"],
];

for (const [name, status, path, ...headers] of REFUSED) {
  Deno.test(`no way is found for ${name}: ${status}`, async () => {
    const lookups = new NodeLookups(new FakeApi(), new FakeTimers());
    const error = await assertRejects(
      () => route(path, headers, { lookups }),
      MessageError,
    );
    assertEquals(error.status, status);
  });
}

Deno.test("an answer that was none is not believed", async () => {
  const api = new FakeApi();
  const lookups = new NodeLookups(api, new FakeTimers());
  const path = "/exec/web/late/main";
  const headers = ["Host: edge-1:10250"];
  await assertRejects(() => route(path, headers, { lookups }), MessageError);
  api.objects["/api/v1/namespaces/web/pods/late"] = {
    spec: { nodeName: "edge-1" },
  };
  assertEquals((await route(path, headers, { lookups })).node, "edge-1");
});

Deno.test("the address that the caller came to tells the node when nothing else does", async () => {
  const came = (
    host: string,
    headers: readonly string[] = [],
    serverName = "",
  ) =>
    route("/metrics", [`Host: ${host}`, ...headers], {
      served: ["10.0.0.1"],
      serverName,
    });
  const wanted = {
    node: "10.0.0.1",
    address: "10.0.0.1:10250",
    names: ["10.0.0.1"],
  };
  // A request to the node's proxy, passed on as kubectl sent it.
  assertEquals(await came("127.0.0.1:6443"), wanted);
  assertEquals(await came("kubernetes.default.svc:443"), wanted);
  assertEquals(
    await came("127.0.0.1:6443", ["Connection: upgrade", "Upgrade: SPDY/3.1"]),
    wanted,
  );
  // Who is not here is not taken for the node that this machine is.
  assertEquals((await came("edge-9:10250")).node, "edge-9");
  assertEquals((await came("10.0.0.9:10250")).node, "10.0.0.9");
  const named = await came("kubernetes:443", [], "edge-9");
  assertEquals(named.node, "kubernetes");
});
