/**
 * The page before a real server with real agents: let in by the link of `tunnel
 * dashboard`, looked at, and used.
 *
 * @module
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { openBrowser, Visit } from "./browser.ts";
import type { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { NodeStage } from "../support/rigs/node_stage.ts";

/** A server and agents that are linked, beside an echo. */
class RealTunnel extends NodeStage {
  readonly #adminPort = freePort();
  /** Where what is dialed through the tunnel answers. */
  readonly targetPort = this.echo();

  static async of(...nodes: readonly string[]): Promise<RealTunnel> {
    const tunnel = new RealTunnel(await Workspace.make());
    await tunnel.startServer();
    for (const node of nodes) await tunnel.joined(node, "--allow-preset=all");
    return tunnel;
  }

  async startServer(): Promise<void> {
    const admin = `--admin-port=${this.#adminPort}`;
    await this.server.start("--server-id=real-1", admin);
  }

  /** A link as a user gets it. */
  async link(...flags: readonly string[]): Promise<string> {
    return (await this.ask("dashboard", ...flags)).stdout.trim();
  }

  /** A connection through the tunnel that stays, with something moving on it. */
  dialThrough(node: string): Child {
    return this.launch(`dial-${node}`, [
      ...["sh", "-c", '(while echo ping; do sleep 0.2; done) | "$@"', "sh"],
      ...ourCommand("dial", `--server=unix:${this.server.socket}`),
      ...[`--node=${node}`, `127.0.0.1:${this.targetPort}`],
    ]);
  }
}

/** Percent of a core. Generous: the bar is 2, and what is seen is printed. */
const CPU_PERCENT_MAX = 20;
const MEASURED_MS = 20_000;

let browser: Browser;
let tunnel: RealTunnel;

Deno.test.beforeAll(async () => {
  browser = await openBrowser();
  tunnel = await RealTunnel.of("edge-1", "edge-2");
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
    const before = cpuMs(tunnel.server.child.pid);
    await page.waitForTimeout(MEASURED_MS / 2);
    const spent = cpuMs(tunnel.server.child.pid) - before;
    const percent = spent / (MEASURED_MS / 2) * 100;
    costs.push(`${view} ${percent.toFixed(1)} %`);
    assert(percent <= CPU_PERCENT_MAX, costs.join());
  }
  // deno-lint-ignore no-console -- figures are what one runs it for.
  console.log(`processor of the server: ${costs.join(", ")}`);
});

check("a server that is restarted is found again", async (page) => {
  await tunnel.server.stop("SIGTERM");
  await page.getByText("The server does not answer.").waitFor();
  await page.getByText("not live").waitFor();
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
    (await tunnel.ask("node", "list", "--only=revoked")).stdout,
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
