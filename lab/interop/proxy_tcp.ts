/**
 * A real program that speaks TCP through the service proxy: Redis.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { debianCommand } from "../../tests/support/program/debian.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { FlappingService, type ProxyCases, startDebian } from "./proxy_case.ts";
import { eventually } from "./kube_case.ts";
import { mustEnd } from "../../tests/support/program/run.ts";

const SERVERS = 3;
const COMMANDS = 400;
const NEW_CONNECTIONS = 150;

async function redisCli(
  port: number,
  ...words: readonly string[]
): Promise<string> {
  return await mustEnd([
    ...await debianCommand("redis-cli"),
    ...["-h", "127.0.0.1", "-p", String(port), "-e", ...words],
  ]);
}

/** A server that keeps nothing on disk. */
async function startRedis(workspace: Workspace, port = freePort()) {
  const folder = workspace.path("redis");
  await Deno.mkdir(folder);
  const child = await startDebian(
    workspace,
    "redis-server",
    ...["--port", String(port), "--bind", "127.0.0.1", "--dir", folder],
    ...["--save", "", "--appendonly", "no"],
  );
  await eventually(
    "redis answers",
    async () => (await redisCli(port, "ping").catch(() => "")).includes("PONG"),
  );
  return Object.assign(child, { port, address: `127.0.0.1:${port}` });
}

async function hitsOf(ports: readonly number[]): Promise<number> {
  const counts = await Promise.all(
    ports.map(async (port) => Number(await redisCli(port, "get", "hits"))),
  );
  return counts.reduce((total, one) => total + one, 0);
}

export const PROXY_TCP_CASES: ProxyCases = {
  "redis-cli loses no command, on a connection that stays and on new ones":
    async (workspace) => {
      await using stack = new AsyncDisposableStack();
      const servers = [];
      for (let at = 0; at < SERVERS; at++) {
        servers.push(stack.use(await startRedis(workspace)));
      }
      const ports = servers.map(({ port }) => port);
      await using service = await FlappingService.start(workspace, {
        endpoints: servers.map(({ address }) => address),
      });
      const staying = redisCli(
        service.port,
        ...["-r", String(COMMANDS), "-i", "0.01", "incr", "hits"],
      );
      for (let made = 0; made < NEW_CONNECTIONS; made++) {
        await redisCli(service.port, "incr", "hits");
      }
      await staying;
      assert(service.changes > 5, `only ${service.changes} changes`);
      assertEquals(await hitsOf(ports), COMMANDS + NEW_CONNECTIONS);
    },

  "redis-cli always gets in while servers are killed and come back": async (
    workspace,
  ) => {
    await using stack = new AsyncDisposableStack();
    const servers = [];
    for (let at = 0; at < SERVERS; at++) {
      servers.push(stack.use(await startRedis(workspace)));
    }
    const [dying, living] = servers.map(({ address }) => address);
    await using service = await FlappingService.start(workspace, {
      endpoints: servers.map(({ address }) => address),
      // Or the dead one might be the only one that is left.
      steady: [dying!, living!],
    });
    let made = 0;
    const increment = async (count: number) => {
      for (let one = 0; one < count; one++, made++) {
        await redisCli(service.port, "incr", "hits");
      }
    };
    await increment(10);
    const lost = await hitsOf([servers[0]!.port]);
    // Nobody is connected now, so nobody can lose anything but a try.
    await servers[0]!.stop("SIGKILL");
    await increment(NEW_CONNECTIONS);
    stack.use(await startRedis(workspace, servers[0]!.port));
    await increment(NEW_CONNECTIONS);
    const counted = await hitsOf(servers.map(({ port }) => port));
    assertEquals(counted, made - lost);
  },
};
