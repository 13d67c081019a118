/**
 * The page before a real server with real agents: let in by the link of `tunnel
 * dashboard`, looked at, and used.
 *
 * @module
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { openBrowser, Visit } from "./browser.ts";
import type { NodesAnswer } from "../../proto/admin/node_answer.ts";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";

/** How long the parts may take to find each other, on a busy machine. */
const READY_MS = 30_000;

class RealTunnel implements AsyncDisposable {
  readonly folder: string = Deno.makeTempDirSync({ prefix: "tunnel-dash-" });
  readonly adminPort = freePort();
  readonly #agentPort = freePort();
  readonly #healthPort = freePort();
  readonly #children = new Set<Child>();
  readonly #target: Deno.Listener;
  #server: Child | undefined;

  private constructor() {
    this.#target = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    echoAll(this.#target).catch(() => {});
  }

  /** A server and its agents, linked. */
  static async start(...nodes: readonly string[]): Promise<RealTunnel> {
    const tunnel = new RealTunnel();
    try {
      await tunnel.#begin(nodes);
      return tunnel;
    } catch (error) {
      await tunnel[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #begin(nodes: readonly string[]): Promise<void> {
    await this.startServer();
    for (const node of nodes) await this.#join(node);
    await this.until(async () => {
      const { nodes: online } = JSON.parse(
        await this.run("node", "list", "--only=online", "--output=json"),
      ) as NodesAnswer;
      return online.length >= nodes.length;
    });
  }

  get serverPid(): number {
    return this.#server!.pid;
  }

  /** Where what is dialed through the tunnel answers. */
  get targetPort(): number {
    return (this.#target.addr as Deno.NetAddr).port;
  }

  async startServer(): Promise<void> {
    this.#server = this.#start("server", [
      "server",
      `--state-dir=${this.#state}`,
      ...["--agent-bind-address=127.0.0.1", "--server-id=real-1"],
      `--agent-port=${this.#agentPort}`,
      "--server-port=0",
      "--health-bind-address=127.0.0.1",
      `--health-port=${this.#healthPort}`,
      `--admin-port=${this.adminPort}`,
      `--uds-name=${this.folder}/f.sock`,
    ]);
    await this.until(async () => {
      const url = `http://127.0.0.1:${this.#healthPort}/healthz`;
      const response = await fetch(url);
      await response.body?.cancel();
      return response.ok;
    });
  }

  /** Ends the server as a service manager does. */
  async stopServer(): Promise<void> {
    const server = this.#server!;
    await server.stop();
    this.#children.delete(server);
  }

  /** A command of ours that asks this server. @returns What it prints. */
  async run(...words: readonly string[]): Promise<string> {
    const [program, ...args] = ourCommand(
      ...words,
      `--state-dir=${this.#state}`,
    );
    const { stdout, stderr, success } = await new Deno.Command(program!, {
      args,
      env: { NO_COLOR: "1" },
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
    if (success) return text(stdout);
    throw new Error(`Cannot run ${words.join(" ")}: ${text(stderr)}`);
  }

  /** A link as a user gets it. */
  link(...flags: readonly string[]): Promise<string> {
    return this.run("dashboard", ...flags);
  }

  /** A connection through the tunnel that stays, with something moving on it. */
  dialThrough(node: string): Child {
    const [program, ...args] = ourCommand(
      "dial",
      `--server=unix:${this.folder}/f.sock`,
      `--node=${node}`,
      `127.0.0.1:${this.targetPort}`,
    );
    return this.#start(`dial-${node}`, [], [
      ...["sh", "-c", '(while echo ping; do sleep 0.2; done) | "$@"', "sh"],
      ...[program!, ...args],
    ]);
  }

  /** @throws When it does not become so. */
  async until(isSo: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + READY_MS;
    let problem: unknown;
    while (performance.now() < deadline) {
      try {
        if (await isSo()) return;
      } catch (error) {
        problem = error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`It did not become so: ${problem ?? "no error"}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#children].map((child) => child.stop()));
    this.#target.close();
    await Deno.remove(this.folder, { recursive: true });
  }

  get #state(): string {
    return `${this.folder}/state`;
  }

  async #join(node: string): Promise<void> {
    const printed = await this.run("token", "create");
    const [token] = /tnl1\.\S+/.exec(printed)!;
    this.#start(`agent-${node}`, [
      "agent",
      `--server=127.0.0.1:${this.#agentPort}`,
      `--join=${token}`,
      `--node=${node}`,
      `--state-dir=${this.folder}/${node}`,
      "--health-server-host=127.0.0.1",
      `--health-server-port=${freePort()}`,
      `--admin-server-port=${freePort()}`,
      "--allow-preset=all",
    ]);
  }

  #start(
    name: string,
    words: readonly string[],
    command: readonly string[] = ourCommand(...words),
  ): Child {
    const child = new Child({
      name,
      command,
      logFile: `${this.folder}/${name}.log`,
    });
    this.#children.add(child);
    return child;
  }
}

async function echoAll(listener: Deno.Listener): Promise<void> {
  for await (const conn of listener) {
    conn.readable.pipeTo(conn.writable).catch(() => {});
  }
}

/** Percent of a core. Generous: the bar is 2, and what is seen is printed. */
const CPU_PERCENT_MAX = 20;
const MEASURED_MS = 20_000;

let browser: Browser;
let tunnel: RealTunnel;

Deno.test.beforeAll(async () => {
  browser = await openBrowser();
  tunnel = await RealTunnel.start("edge-1", "edge-2");
  tunnel.dialThrough("edge-1");
});

Deno.test.afterAll(async () => {
  await browser.close();
  await tunnel[Symbol.asyncDispose]();
});

function check(
  name: string,
  run: (page: Page, visit: Visit) => Promise<void>,
  ...flags: readonly string[]
): void {
  Deno.test({
    name,
    // The browser and the tunnel outlive each test.
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      const link = await tunnel.link(...flags);
      await using visit = await Visit.open(browser, link);
      await visit.page.locator(".counts").waitFor();
      await run(visit.page, visit);
      visit.check();
    },
  });
}

check("a link lets one browser in, once", async (page) => {
  await page.getByText("real-1").first().waitFor();
  assertEquals(new URL(page.url()).hash, "");
  const link = await tunnel.link();
  for (const isGood of [true, false]) {
    await using other = await Visit.open(browser, link);
    const text = isGood ? "real-1" : "The code is not known";
    await other.page.getByText(text).first().waitFor();
    other.check();
  }
});

check("nodes and conduits are those of the server", async (page, visit) => {
  await visit.goTo("nodes/edge-1");
  const aside = page.locator("aside");
  await aside.getByText("linked").first().waitFor();
  assertStringIncludes(await aside.innerText(), "joined");
  await visit.goTo("conduits");
  await page.locator('[role="row"]', { hasText: `${tunnel.targetPort}` })
    .waitFor();
  await visit.goTo("certificates");
  await page.getByText("tunnel CA").first().waitFor();
  await visit.goTo("services");
  await page.getByText("start it with --discovery").waitFor();
  await visit.goTo("log");
  await page.getByText("node joined").first().waitFor();
});

check("who may look is refused by the server as well", async (page) => {
  await page.getByText("view only").waitFor();
  const status = await page.evaluate(`fetch("/v1/nodes/edge-2/drain", {
    method: "POST",
    headers: { "content-type": "application/json", "x-tunnel-admin": "1" },
    body: "{}",
  }).then(({ status }) => status)`);
  assertEquals(status, 403);
}, "--role=view");

check("an open page costs the server next to nothing", async (page, visit) => {
  const costs: string[] = [];
  for (const view of ["overview", "nodes"]) {
    await visit.goTo(view);
    await page.waitForTimeout(1_000);
    const before = cpuMs(tunnel.serverPid);
    await page.waitForTimeout(MEASURED_MS / 2);
    const spent = cpuMs(tunnel.serverPid) - before;
    const percent = spent / (MEASURED_MS / 2) * 100;
    costs.push(`${view} ${percent.toFixed(1)} %`);
    assert(percent <= CPU_PERCENT_MAX, costs.join());
  }
  // deno-lint-ignore no-console -- figures are what one runs it for.
  console.log(`processor of the server: ${costs.join(", ")}`);
});

check("a server that is restarted is found again", async (page) => {
  await tunnel.stopServer();
  await page.getByText("The server does not answer.").waitFor();
  await tunnel.startServer();
  await page.getByText("The server does not answer.").waitFor({
    state: "hidden",
  });
  await page.getByText("live", { exact: true }).waitFor();
  await page.locator(".counts a", { hasText: /2online/ }).waitFor();
});

check("a conduit is killed, a node drained and revoked", async (
  page,
  visit,
) => {
  const dial = tunnel.dialThrough("edge-1");
  await visit.goTo("conduits");
  await page.locator('[role="row"][aria-rowindex="2"]').click();
  await act(page, "Kill");
  await dial.ended;
  await visit.goTo("nodes/edge-2");
  await act(page, "Drain");
  await act(page, "Revoke");
  await page.locator("aside .panel-state", { hasText: "revoked" }).waitFor();
  assertStringIncludes(
    await tunnel.run("node", "list", "--only=revoked"),
    "edge-2",
  );
});

/** Presses a button of the panel, and says yes. */
async function act(page: Page, verb: string): Promise<void> {
  await page.locator("aside").getByRole("button", { name: verb }).click();
  const dialog = page.getByRole("dialog");
  await dialog.locator("button[type=submit]").click();
  await dialog.waitFor({ state: "hidden" });
  const notice = page.locator(".notice");
  await notice.waitFor();
  assertEquals(await page.locator(".notice.is-bad").count(), 0, verb);
  await notice.getByLabel("Dismiss").click();
}

/** What a process has used of processors, by its clock of 10 ms ticks. */
function cpuMs(pid: number): number {
  const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
