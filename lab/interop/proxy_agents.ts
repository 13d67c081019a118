/**
 * `tunnel proxy` on a machine that reaches no endpoint by itself, which is a
 * network namespace of its own: what is answered came through a real server and
 * a real agent. The server's frontend is a socket file, which namespaces share.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import {
  ourCommand,
  startAgent,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { eventually } from "./kube_case.ts";
import { type ProxyCases } from "./proxy_case.ts";
import { mustEnd } from "../../tests/support/program/run.ts";

const ADMIN_PORT = 8096;

/** What the agent is known by, and the same by `via`. */
const IDENTIFIERS = "host=edge-7&uid=4711&cidr=10.7.0.0/16";
const AGENTS = {
  "by-host": { host: "edge-7" },
  "by-uid": { uid: "4711" },
  "by-cidr": { cidr: "10.7.0.0/16" },
  "by-any": "agent",
} as const;

/** A proxy in a namespace, and programs beside it. */
class LonelyProxy implements AsyncDisposable {
  private constructor(readonly child: Child) {}

  static async start(
    workspace: Workspace,
    services: readonly object[],
    frontend: string,
  ): Promise<LonelyProxy> {
    const file = workspace.path("services.json");
    await Deno.writeTextFile(file, JSON.stringify({ services }));
    const command = ourCommand(
      "proxy",
      `--config=${file}`,
      `--server=unix:${frontend}`,
      `--admin-port=${ADMIN_PORT}`,
      "--drain-timeout=0s",
    );
    // Each becomes the next, so the process is the proxy in the end.
    const child = new Child({
      name: "tunnel proxy",
      command: [
        ...["unshare", "--net", "sh", "-c"],
        ...['ip link set lo up && exec "$@"', "sh", ...command],
      ],
      logFile: workspace.path("proxy.log"),
    });
    const proxy = new LonelyProxy(child);
    await child.untilPrinted(/proxy started/);
    await eventually(
      "everything is served",
      async () => !/ - +\d+\/\d+ /.test(await proxy.says("services")),
    );
    return proxy;
  }

  /** What a client beside it is answered. */
  curl(port: number): Promise<string> {
    return this.#beside("curl", "-sS", "-m9", `http://127.0.0.1:${port}/`);
  }

  says(...words: readonly string[]): Promise<string> {
    return this.#beside(...ourCommand(...words));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child.stop();
  }

  #beside(...command: readonly string[]): Promise<string> {
    const net = `--net=/proc/${this.child.pid}/ns/net`;
    return mustEnd(["nsenter", net, ...command]);
  }
}

/** Ports that services listen on, in the namespace; the first is 7001. */
function listenPort(index: number): number {
  return 7_001 + index;
}

function serviceOf(
  name: string,
  index: number,
  endpoint: object,
  policy: object = {},
) {
  const port = listenPort(index);
  return {
    name,
    ports: [{ port, listen: `127.0.0.1:${port}` }],
    policy,
    endpoints: [endpoint],
  };
}

/** An HTTP server that only this machine's own namespace has. */
function startBackend(text: string) {
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const server = Deno.serve(options, () => new Response(text));
  return Object.assign(server, { port: server.addr.port });
}

/** A reset may come before curl has noticed that it is connected. */
async function assertReset(answer: Promise<string>): Promise<void> {
  const error = await assertRejects(() => answer, Error);
  assertMatch(error.message, /reset|Couldn't connect/);
}

export const PROXY_AGENT_CASES: ProxyCases = {
  "what is behind an agent is served where nothing else reaches it": async (
    workspace,
  ) => {
    await using backend = startBackend("from afar");
    const server = await startServer(workspace, {
      maker: "ours",
      mode: "grpc",
      transport: "uds",
      extraFlags: ["--proxy-strategies=destHost,default"],
    });
    const identifiers = [`--agent-identifiers=${IDENTIFIERS}`];
    const agent = await startAgent(workspace, server, "ours", identifiers);
    if (server.frontend.transport !== "uds") throw new TypeError("No socket");
    const there = { address: "127.0.0.1", port: backend.port };
    const names = Object.entries(AGENTS);
    await using proxy = await LonelyProxy.start(
      workspace,
      [
        ...names.map(([name, via], index) =>
          serviceOf(name, index, { ...there, via })
        ),
        serviceOf("fallback", 4, there, { agentOnFailure: true }),
        serviceOf("direct", 5, there),
        serviceOf("nobody", 6, { ...there, via: { uid: "4712" } }),
        serviceOf("dead", 7, { ...there, port: freePort(), via: "agent" }, {}),
      ],
      server.frontend.path,
    );
    for (const index of [0, 1, 2, 3, 4]) {
      assertEquals(await proxy.curl(listenPort(index)), "from afar");
    }
    // By itself it reaches nothing; no other agent stands in for one by name.
    for (const index of [5, 6, 7]) {
      await assertReset(proxy.curl(listenPort(index)));
    }
    const said = await proxy.says("services");
    assertMatch(said, /^default\/direct .*127\.0\.0\.1:\d+.* refused/m);
    assertMatch(said, /^default\/nobody .*no agent serves uid=4712/m);
    assertMatch(said, /^default\/dead .*refused/m);
    assertMatch(said, /^default\/fallback +7005\/tcp .* 0 +\d+ +\d+ *$/m);
    assertMatch(
      await proxy.says("endpoints", "by-uid"),
      /\n127\.0\.0\.1:\d+@uid=4711 +in use +agent uid=4711 +- +1 +0 +1 +0 /,
    );
    // The agent dies, and another one comes: nothing else has to be done.
    await agent.child.stop("SIGKILL");
    await assertReset(proxy.curl(listenPort(0)));
    const next = await startAgent(workspace, server, "ours", identifiers);
    for (const index of [0, 1, 2, 3, 4]) {
      assertEquals(await proxy.curl(listenPort(index)), "from afar");
    }
    await next.child.stop("SIGKILL");
    await server.child.stop();
  },
};
