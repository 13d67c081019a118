/**
 * Real programs that speak TCP through the service proxy: Redis, WebSockets,
 * HTTP that keeps its connection.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { debianCommand } from "../peers/debian.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import {
  FlappingService,
  output,
  type ProxyCases,
  sleep,
  startDebian,
} from "./proxy_case.ts";
import { eventually } from "./kube_case.ts";

const SERVERS = 3;
const COMMANDS = 400;
const NEW_CONNECTIONS = 150;
const MESSAGES = 400;
const REQUESTS = 300;

async function redisCli(
  port: number,
  ...words: readonly string[]
): Promise<string> {
  return await output([
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

/** An HTTP server of the platform's: answers late, and echoes WebSockets. */
function startHttp() {
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen() {},
  }, async (request) => {
    if (request.headers.get("upgrade") !== "websocket") {
      await sleep(5);
      return new Response("hello\n");
    }
    const { socket, response } = Deno.upgradeWebSocket(request);
    socket.onmessage = ({ data }) => socket.send(data);
    return response;
  });
  return {
    address: `127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** One message after the other; each must come back before the next goes. */
async function echo(port: number, count: number): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let received = 0;
  socket.onopen = () => socket.send("0");
  socket.onclose = () => reject(new Error(`closed after ${received} messages`));
  socket.onmessage = async ({ data }) => {
    if (data !== String(received)) {
      reject(new Error(`${data} came, not ${received}`));
    }
    if (++received === count) return resolve();
    await sleep(5);
    socket.send(String(received));
  };
  try {
    await promise;
  } finally {
    socket.onclose = null;
    socket.close();
  }
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

  "a WebSocket lives on while its endpoints come and go": async (workspace) => {
    await using stack = new AsyncDisposableStack();
    const servers = Array.from(
      { length: SERVERS },
      () => stack.use(startHttp()),
    );
    await using service = await FlappingService.start(workspace, {
      endpoints: servers.map(({ address }) => address),
    });
    await Promise.all(
      Array.from({ length: 6 }, () => echo(service.port, MESSAGES)),
    );
    assert(service.changes > 5, `only ${service.changes} changes`);
  },

  "curl keeps its one connection, and gets in with new ones": async (
    workspace,
  ) => {
    await using stack = new AsyncDisposableStack();
    const servers = Array.from(
      { length: SERVERS },
      () => stack.use(startHttp()),
    );
    await using service = await FlappingService.start(workspace, {
      endpoints: servers.map(({ address }) => address),
    });
    const url = `http://127.0.0.1:${service.port}/?[1-${REQUESTS}]`;
    const curl = ["curl", "--silent", "--show-error", "--noproxy", "*"];
    const tell = ["--output", "/dev/null", "--write-out"];
    const kept = await output(
      [...curl, ...tell, "%{http_code} %{num_connects}\n", url],
    );
    const lines = kept.trim().split("\n");
    assertEquals(lines.length, REQUESTS);
    assertEquals([lines[0], new Set(lines.slice(1))], [
      "200 1",
      new Set(["200 0"]),
    ]);
    const fresh = await output(
      [
        ...[...curl, "--header", "Connection: close"],
        ...[...tell, "%{http_code} %{num_connects}\n", url],
      ],
    );
    assertEquals(new Set(fresh.trim().split("\n")), new Set(["200 1"]));
    assert(service.changes > 5, `only ${service.changes} changes`);
  },
};
