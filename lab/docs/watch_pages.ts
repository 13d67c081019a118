/**
 * Pages about a tunnel, and about what is asked of it.
 *
 * @module
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import {
  AGENT_UP,
  PROXY_UP,
  SERVER_UP,
  startAgent,
  startServer,
  tokenIn,
} from "./node_joins.ts";
import type { RunOptions } from "./machine.ts";
import type { PageRun, PageScript } from "./page_run.ts";

const SERVICES = `services:
- name: web
  ports: [{port: 80, listen: "127.0.0.1:8088"}]
  endpoints: [{address: 127.0.0.1, via: {host: node1}}]
`;

async function readme(page: PageRun): Promise<void> {
  const { hub, node } = page.stage;
  await page.stage.answer(node, "127.0.0.1:22", "127.0.0.1:80");
  const first = await page.start(hub, "server", SERVER_UP);
  const { said } = await page.run(hub, "token create");
  const agent = { with: { "tnl1.…": tokenIn(said) } };
  await page.start(node, "agent", AGENT_UP, agent);
  await page.run(hub, "dial node1:22", { says: /SSH-2\.0/ });
  await page.start(hub, "forward 8080", /8080 -> /);
  assertEquals(await hub.must("curl -sS http://127.0.0.1:8080/"), "hello\n");
  await page.run(hub, "bench", { says: /round trip/ });
  await page.run(hub, "status", { says: /node1/ });
  await hub.write("services.yaml", SERVICES);
  await page.start(hub, "server --discovery", SERVER_UP);
  await first.ended;
  await page.start(node, "proxy", PROXY_UP);
  const asked = "curl -s --retry 9 --retry-connrefused http://127.0.0.1:8088/";
  assertEquals(await node.must(asked), "hello\n");
}

async function start(page: PageRun): Promise<void> {
  const { hub, node } = page.stage;
  await page.stage.answer(node, "127.0.0.1:22");
  await page.start(hub, "server", SERVER_UP);
  const { said } = await page.run(hub, "token create");
  const agent = { with: { "tnl1.…": tokenIn(said) } };
  await page.start(node, "agent", AGENT_UP, agent);
  await page.run(hub, "dial node1:22", { says: /SSH-2\.0/ });
}

async function migrate(page: PageRun): Promise<void> {
  const { hub, node } = page.stage;
  await page.start(hub, "forward --frontend", /egress\.sock -> /);
  await startServer(page.stage);
  await startAgent(page.stage, "node1");
  await page.stage.answer(node, "127.0.0.1:22", "127.0.0.1:80");
  await page.start(hub, "forward 8080", /8080 -> /);
  assertEquals(await hub.must("curl -sS http://127.0.0.1:8080/"), "hello\n");
  await page.start(hub, "forward '*:6000", /6000 -> /);
  await page.start(hub, "forward 5353", /5353 -> /);
}

const POLICY = `frontends:
- commonName: alice
  allow:
  - tcp:10.0.0.0/8:5432
admins:
- commonName: alice
  role: view
`;

async function observability(page: PageRun): Promise<void> {
  await dashboard(page);
  await page.stage.clear();
  await adminApi(page);
}

async function adminApi(page: PageRun): Promise<void> {
  const { hub } = page.stage;
  await page.stage.issue(hub, "alice");
  await page.stage.issue(hub, "front", "server", ["tunnel.example"]);
  await hub.write("policy.yaml", POLICY);
  await startServer(
    page.stage,
    "--admin-remote-port 8097 --admin-client-ca-file ca.crt " +
      "--server-cert front.crt --server-key front.key " +
      "--server-ca-cert ca.crt " +
      "--policy-file policy.yaml",
  );
  await page.run(hub, "status --server", { says: /^server \S+ +not ready/m });
}

async function dashboard(page: PageRun): Promise<void> {
  const { hub } = page.stage;
  const browser = `${hub.bin}/xdg-open`;
  await Deno.writeTextFile(
    browser,
    `#!/bin/sh\ncurl -sSL --max-time 20 "$1" >'${hub.path("page")}' 2>&1\n`,
    { mode: 0o755 },
  );
  await startServer(page.stage);
  const link = /http:\/\/127\.0\.0\.1:8095\/dashboard\/#code=\w+/;
  await page.run(hub, "dashboard #", { says: link });
  await page.run(hub, "dashboard --open", { says: link });
  assertStringIncludes(await Deno.readTextFile(hub.path("page")), "<!doctype");
  await page.run(hub, "dashboard", { says: link });
  await Deno.remove(browser);
}

async function doctor(page: PageRun): Promise<void> {
  const { hub, node } = page.stage;
  const cut = (line: string) => ({ with: synopsis(page, line) });
  await startServer(page.stage);
  await startAgent(page.stage, "edge-7");
  await page.run(hub, "doctor what", cut("doctor"));
  await page.run(hub, "doctor server", cut("doctor server"));
  await page.run(node, "doctor agent", cut("doctor agent"));
  await page.run(hub, "doctor node NAME", cut("doctor node edge-7"));
  await page.stage.answer(node, "127.0.0.1:80");
  const target = "doctor target 127.0.0.1:80 --node edge-7";
  await page.run(hub, "doctor target", cut(target));
  const { said, answer } = await page.run(node, "doctor agent --server", {
    exit: 1,
  });
  // The page's own words, but for times, dates and process ids.
  const rows = (text: string) =>
    [...text.matchAll(/^(?: +(?:ok|FAILED) +\w+|Wrong:.*|Do:.*|More:.*)/gm)]
      .map(([row]) => row);
  assertEquals(rows(said), rows(answer));
}

/** The words in capitals of the table are the ones of this stage. */
const MEANT: Readonly<Record<string, string>> = {
  "HOST:PORT": "127.0.0.1:80",
  NODE: "edge-7",
  SERVICE: "web",
  COMMAND: "server",
};

async function troubleshooting(page: PageRun): Promise<void> {
  const { hub, node } = page.stage;
  await page.stage.answer(node, "127.0.0.1:80", "127.0.0.1:22");
  const services = SERVICES.replace("node1", "edge-7");
  await hub.write("services.yaml", services);
  await hub.write("policy.yaml", POLICY);
  await startServer(
    page.stage,
    "--discovery --discovery-config services.yaml",
  );
  await startAgent(page.stage, "edge-7");
  await hub.start("tunnel proxy --config services.yaml", PROXY_UP);
  await node.start(
    "tunnel proxy --discovery tunnel.example:8091",
    PROXY_UP,
  );
  await hub.start(
    "tunnel forward 8080:127.0.0.1:22@edge-7 --node edge-7",
    /8080 -> /,
  );
  // The table's come first; the block of `doctor` is behind them.
  while (!page.left[0]!.text.includes("what this machine is")) {
    const { text } = page.left[0]!;
    const words = text.slice("tunnel ".length);
    const meant = Object.entries(MEANT).filter(([name]) => text.includes(name));
    const options: RunOptions = { with: Object.fromEntries(meant) };
    await typed(page, words, options);
  }
  await page.stage.clear();
  await doctor(page);
}

async function typed(
  page: PageRun,
  words: string,
  options: RunOptions,
): Promise<void> {
  const { hub, node } = page.stage;
  if (words === "top") {
    // It is for a terminal, which `script` makes.
    const top = page.take(words);
    const { said } = await hub.run(
      `timeout 5 script -qc 'stty rows 40 cols 120; ${top}' /dev/null </dev/null`,
    );
    if (!said.includes("q quit")) throw new Error(said);
    return page.done();
  }
  if (words === "conn kill ID") {
    using caller = await Deno.connect({ hostname: "127.0.0.1", port: 8080 });
    let id: string | undefined;
    while (id === undefined) {
      const said = await hub.must("tunnel conn list -o json");
      id = /"id": "(\w+)"/.exec(said)?.[1];
    }
    await page.run(hub, words, { with: { ID: id } });
    const ended = caller.read(new Uint8Array(1)).catch(() => null);
    assertEquals(await ended, null);
    return;
  }
  const isOfNode = words === "doctor agent";
  const isCheck = words === "config check";
  await page.run(isOfNode ? node : hub, words, {
    ...options,
    ...isCheck ? { with: { check: "check policy.yaml" } } : {},
  });
}

/** A line of a synopsis, without what it says in brackets and in words. */
function synopsis(page: PageRun, line: string): Record<string, string> {
  return { [page.left[0]!.text]: `tunnel ${line}` };
}

async function operations(page: PageRun): Promise<void> {
  const { hub } = page.stage;
  await hub.write("server.yaml", "v: 2\n\nserver-prt: 1\n");
  await hub.write(
    "policy.yaml",
    `# Who may dial what.
frontends:
  - commonName: alice
    allow: [tcp:10.0.0.0/8:5432]

  - commonName: bob
    allow: tcp:10.0.0.0/8:5432
`,
  );
  const { said, answer } = await page.run(hub, "config check", { exit: 1 });
  assertEquals(said, answer);
}

async function policy(page: PageRun): Promise<void> {
  const { hub, node } = page.stage;
  await startServer(page.stage);
  await startAgent(page.stage, "node1").then((agent) => agent.stop());
  const joined = { with: { "…": "--server tunnel.example:8091" } };
  for (const rule of ["tcp:127.0.0.1", "'tcp:192"]) {
    const agent = await page.start(
      node,
      `agent … --allow ${rule}`,
      AGENT_UP,
      joined,
    );
    await agent.stop();
  }
  await page.stage.clear();
  await Deno.writeTextFile("/etc/tunnel/policy.yaml", POLICY);
  await startServer(page.stage, "--policy-file /etc/tunnel/policy.yaml");
  await startAgent(page.stage, "node1");
  for (const exit of [0, 3]) {
    const { said, answer } = await page.run(hub, "policy test", { exit });
    assertEquals(said, answer);
  }
}

export const WATCH_PAGES: Readonly<Record<string, PageScript>> = {
  "README.md": readme,
  "docs/migrate.md": migrate,
  "docs/observability.md": observability,
  "docs/operations.md": operations,
  "docs/policy.md": policy,
  "docs/start.md": start,
  "docs/troubleshooting.md": troubleshooting,
};
