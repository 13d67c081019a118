/**
 * What docs/reference/admin-api.md says is served is what servers, agents and proxies
 * serve: no more and no less.
 */

import { assert, assertEquals } from "@std/assert";
import { AdminClient, AdminError } from "../../admin/ask/admin_client.ts";
import type { IndexAnswer } from "../../proto/admin/api.ts";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { patience } from "../support/watch/patience.ts";

type Program = "server" | "agent" | "proxy";

const PAGE = new URL("../../docs/reference/admin-api.md", import.meta.url);

/** `METHOD PATH ROLE` of each row of the page that is about `program`. */
function documented(program: Program): readonly string[] {
  const rows = Deno.readTextFileSync(PAGE).matchAll(
    /^\| (GET|POST) \| `(\S+)` \| (view|operate) \| ([a-z, ]+) \|/gm,
  );
  return [...rows]
    .filter(([, , , , programs]) => programs!.split(", ").includes(program))
    .map(([, method, path, role]) => `${method} ${path} ${role}`)
    .sort();
}

async function served(program: Program, path: string) {
  const client = new AdminClient(program, { kind: "unix", path });
  const { paths } = await listening(() => client.get<IndexAnswer>("/v1"));
  return paths.map(({ method, path, role }) => `${method} ${path} ${role}`)
    .sort();
}

/** A socket's file is there a moment before somebody listens. */
async function listening<T>(ask: () => Promise<T>): Promise<T> {
  const startMs = performance.now();
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isLate = performance.now() - startMs > patience(10_000);
      if (!(error instanceof AdminError) || isLate) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

Deno.test("docs/reference/admin-api.md has the paths that are served, with their roles", async () => {
  await using stage = await TunnelProcesses.open();
  const { workspace } = stage;
  const socket = (name: string) => `${workspace.folder}/${name}.sock`;
  const services = workspace.path("services.yaml");
  Deno.writeTextFileSync(services, "services: []\n");
  const auditLog = workspace.path("audit.log");
  const server = stage.start(
    `--admin-socket=${socket("server")}`,
    `--audit-log=${auditLog}`,
  );
  await server.untilPrinted(/server started/);
  await stage.launchAgent(
    `--admin-socket=${socket("agent")}`,
    `--audit-log=${workspace.path("agent-audit.log")}`,
  );
  const proxy = new Child({
    name: "proxy",
    command: ourCommand(
      "proxy",
      `--config=${services}`,
      `--admin-port=${freePort()}`,
      `--admin-socket=${socket("proxy")}`,
      "--address-file=none",
      "--catalog-copies=none",
    ),
    logFile: workspace.path("proxy.log"),
  });
  try {
    for (const program of ["server", "agent", "proxy"] as const) {
      const rows = documented(program);
      assert(rows.length > 5, program);
      assertEquals(rows, await served(program, socket(program)), program);
    }
  } finally {
    await proxy.stop("SIGKILL");
  }
});
