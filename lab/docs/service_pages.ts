/**
 * Pages about services: proxies, discovery, etcd.
 *
 * @module
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  newToken,
  PROXY_UP,
  SERVER_UP,
  startAgent,
  startServer,
} from "./node_joins.ts";
import type { DocsStage } from "./docs_stage.ts";
import type { PageRun, PageScript } from "./page_run.ts";
import { startEtcd } from "./etcd_member.ts";

const SERVICES = `services:
- name: echo
  ports: [{port: 80}]
  endpoints: [{address: 10.0.0.1, port: 8080}]
- name: web
  ports: [{port: 80, listen: "127.0.0.1:8088"}]
  endpoints: [{address: 10.0.0.1, port: 8080}]
- name: db
  ports: [{port: 5432}]
  endpoints: [{address: 10.0.0.7}]
`;

/** Both machines have the file; the hub answers behind it. */
async function withServices(stage: DocsStage): Promise<void> {
  await stage.hub.write("services.yaml", SERVICES);
  await stage.node.write("services.yaml", SERVICES);
  await stage.answer(stage.hub, "10.0.0.1:8080");
}

async function services(page: PageRun): Promise<void> {
  const { hub, node } = page.stage;
  await withServices(page.stage);
  await startProxyOfPage(page);
  await page.run(hub, "services", { says: /^default\/web /m });
  const asked = `eval "$(tunnel services --env | sed 's/^/export /')"
    curl -sS "http://$WEB_SERVICE_HOST:$WEB_SERVICE_PORT/"`;
  assertEquals(await hub.must(asked), "hello\n");
  await page.stage.clear();
  await withServices(page.stage);
  await startServer(page.stage, "--discovery --discovery-config services.yaml");
  const token = await newToken(page.stage, "node1");
  await page.run(node, "join TOKEN", { with: { TOKEN: token } });
  await page.start(node, "proxy --discovery", PROXY_UP);
  const web = "curl -s --retry 9 --retry-connrefused http://127.0.0.1:8088/";
  assertEquals(await node.must(web), "hello\n");
  await page.stage.clear();
  await registration(page);
  await page.stage.clear();
  await withServices(page.stage);
  await page.run(hub, "proxy --config", { says: /^127\.100\.\S+ db\./m });
  assertStringIncludes(await Deno.readTextFile("/etc/hosts"), "web");
}

/** The page leaves it in the background of a shell. */
async function startProxyOfPage(page: PageRun): Promise<void> {
  await page.start(page.stage.hub, "proxy --config", PROXY_UP, {
    with: { " &": "" },
  });
}

async function discovery(page: PageRun): Promise<void> {
  const { stage } = page;
  const { hub, node } = stage;
  await withServices(stage);
  const first = await page.start(hub, "server --discovery", SERVER_UP);
  await first.stop();
  await withEtcd(stage);
  // The page's etcd is one whose authority the machine trusts.
  await page.start(hub, "server --discovery --etcd", SERVER_UP, {
    env: { DENO_CERT: hub.path("ca.crt") },
  });
  await startAgent(stage, "edge-7");
  await node.start(
    "tunnel proxy --discovery tunnel.example:8091",
    PROXY_UP,
  );
  // A proxy has started before it asks, is answered and acknowledges; one that
  // has asked for nothing yet differs in nothing.
  await hub.must(
    "until tunnel xds diff edge-7 --all | grep synced; do sleep 0.5; done",
  );
  await page.run(hub, "xds status", { says: /edge-7/ });
  await page.run(hub, "xds diff edge-7");
  await stage.clear();
  await withServices(stage);
  await startServer(
    stage,
    "--discovery --discovery-config services.yaml " +
      "--discovery-listen 127.0.0.1:15010",
  );
  await startAgent(stage, "edge-7");
  await page.run(hub, "adsc proxy", { says: /10\.0\.0\.1/ });
  await page.run(hub, "adsc grpc echo");
  await page.run(hub, "adsc envoy --wait");
  const watching = await page.start(hub, "adsc raw", /10\.0\.0\.1/);
  await watching.stop();
  await page.run(node, "adsc proxy --server tunnel", { says: /10\.0\.0\.1/ });
}

/** etcd as the page names it, with a service. */
async function withEtcd(stage: DocsStage): Promise<void> {
  const etcd = await startEtcd(stage, "https", ["10.0.0.1"]);
  await etcd.put("/tunnel/services/default/web", '{"ports": [{"port": 80}]}');
}

async function registration(page: PageRun): Promise<void> {
  const { hub } = page.stage;
  const etcd = await startEtcd(page.stage, "http", ["10.0.0.1", "10.0.0.2"]);
  const child = await page.start(hub, "service register", /shop\/db/);
  assertEquals(await etcd.names("/tunnel/"), [
    "/tunnel/endpoints/shop/db/10.0.0.7:5432",
    "/tunnel/services/shop/db",
  ]);
  await child.stop();
  assertEquals(await etcd.names("/tunnel/endpoints/"), []);
  assert(child.hasEnded);
}

export const SERVICE_PAGES: Readonly<Record<string, PageScript>> = {
  "docs/discovery.md": discovery,
  "docs/services.md": services,
};
