/**
 * Restarts of a server and of an agent, of real processes, with conduits held and
 * dials running: no dial is refused.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import type {
  FrontendProtocol,
  TunnelRoute,
} from "../../client/tunnel_route.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import { Child } from "../peers/child.ts";
import { freePort } from "../peers/ports.ts";
import { launchAgent, ourCommand, type RunningAgent } from "../peers/tunnel.ts";
import { Workspace } from "../peers/workspace.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { ProxyRig } from "../support/rigs/proxy_rig.ts";
import { FakeSystemd } from "../support/peers/fake_systemd.ts";
import { SteadyRequests } from "../support/peers/steady_requests.ts";

/** Servers, one after the other, with two agents. */
class ServerStage implements AsyncDisposable {
  readonly #targets = new ProxyRig();
  readonly #target = this.#targets.echo();
  readonly #children: Child[] = [];
  readonly #agents: RunningAgent[] = [];
  readonly #frontend: string;
  readonly agentPort = freePort();
  readonly healthUrl: string;
  readonly #flags: readonly string[];

  constructor(readonly workspace: Workspace) {
    const { ca, server } = workspace.certificates;
    const healthPort = freePort();
    this.#frontend = workspace.path("front.sock");
    this.healthUrl = `http://127.0.0.1:${healthPort}`;
    this.#flags = [
      "--mode=auto",
      `--agent-port=${this.agentPort}`,
      "--agent-bind-address=127.0.0.1",
      `--health-port=${healthPort}`,
      "--health-bind-address=127.0.0.1",
      `--admin-port=${freePort()}`,
      `--cluster-cert=${server.cert}`,
      `--cluster-key=${server.key}`,
      `--cluster-ca-cert=${ca}`,
      `--uds-name=${this.#frontend}`,
      "--server-port=0",
      "--graceful-shutdown-timeout=20s",
    ];
  }

  start(...flags: string[]): Child {
    return this.run(this.command(...flags));
  }

  command(...flags: string[]): readonly string[] {
    return ourCommand("server", ...this.#flags, ...flags);
  }

  run(command: readonly string[]): Child {
    const count = this.#children.length;
    const child = new Child({
      name: `server ${count}`,
      command,
      logFile: this.workspace.path(`server-${count}.log`),
    });
    this.#children.push(child);
    return child;
  }

  async addAgents(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const agent = await this.launch(`--agent-id=agent-${index}`);
      await agent.child.untilReady(`${agent.healthUrl}/readyz`);
    }
  }

  async launch(...flags: string[]): Promise<RunningAgent> {
    const at = { agentHost: "127.0.0.1", agentPort: this.agentPort };
    const agent = await launchAgent(this.workspace, at, "ours", flags);
    this.#agents.push(agent);
    return agent;
  }

  async readiness(): Promise<string> {
    const answer = await fetch(`${this.healthUrl}/readyz`);
    return `${answer.status} ${await answer.text()}`;
  }

  /** A conduit over a caller's connection of its own. */
  async connect(protocol: FrontendProtocol): Promise<ConduitProbe> {
    const address = { kind: "unix", path: this.#frontend } as const;
    const route: TunnelRoute = { kind: "tunnel", protocol, address };
    const dialer = openDialer(route);
    const target = {
      protocol: "tcp",
      address: `127.0.0.1:${this.#target}`,
    };
    try {
      return new ConduitProbe(await dialer.dial({ target }));
    } finally {
      dialer.close();
    }
  }

  requests(protocol: FrontendProtocol): SteadyRequests {
    return new SteadyRequests(async () => {
      const conduit = await this.connect(protocol);
      conduit.send("hello");
      await conduit.received(5);
      conduit.reset("asked enough");
    }, 2);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#agents) await child.stop("SIGKILL");
    for (const child of this.#children) await child.stop("SIGKILL");
    await this.#targets[Symbol.asyncDispose]();
    await this.workspace.remove();
  }
}

async function assertAllAnswered(requests: SteadyRequests): Promise<void> {
  const { answered, failures } = await requests.stop();
  assertEquals(Object.fromEntries(failures), {}, `${answered} were answered`);
  assert(answered > 40, `only ${answered} were asked`);
}

for (const how of ["--replace", "SIGTERM"]) {
  Deno.test(`a server is restarted without refusing a dial: ${how}`, async () => {
    await using stage = new ServerStage(await Workspace.make());
    const old = stage.start();
    await old.untilReady(`${stage.healthUrl}/healthz`);
    await stage.addAgents(2);
    const held = [
      await stage.connect("grpc"),
      await stage.connect("http-connect"),
    ];
    const requests = [stage.requests("grpc"), stage.requests("http-connect")];
    for (const one of requests) await one.more(20);
    if (how === "--replace") {
      const second = stage.start();
      assertEquals((await second.ended).code, 1);
      assertMatch(
        await second.logTail(),
        /A tunnel server runs here already \(process \d+\): take its place/,
      );
    } else {
      old.signal("SIGTERM");
      await old.untilPrinted(/SIGTERM: draining, \d+ connections/);
      assertMatch(await stage.readiness(), /^500 the server is stopping/);
      for (const one of requests) await one.more(20);
    }
    const young = stage.start(...how === "--replace" ? [how] : []);
    await young.untilPrinted(/took over from process/);
    await old.untilPrinted(/handed over to process/);
    assertMatch(await stage.readiness(), /^200/);
    for (const one of requests) await one.more(40);
    for (const one of requests) await assertAllAnswered(one);
    for (const one of held) {
      one.send("still");
      await one.received(5);
      one.reset("over");
    }
    assertEquals((await old.ended).code, 0);
    assertMatch(await old.logTail(), /the server has ended/);
  });
}

Deno.test("no dial is refused while systemd stops a server and starts the next one", async () => {
  await using stage = new ServerStage(await Workspace.make());
  using manager = new FakeSystemd(stage.workspace.path("notify"));
  const start = () => stage.run(manager.passing(manager.kept, stage.command()));
  const old = start();
  await manager.until(/^READY=1/);
  await stage.addAgents(1);
  const requests = [stage.requests("grpc"), stage.requests("http-connect")];
  for (const one of requests) await one.more(20);
  old.signal("SIGTERM");
  await manager.until(/^FDSTORE=1/);
  assertEquals((await old.ended).code, 0);
  manager.clear();
  const young = start();
  await young.untilPrinted(/sockets were kept open: .*unix/);
  await manager.until(/^READY=1/);
  for (const one of requests) await one.more(20);
  for (const one of requests) await assertAllAnswered(one);
});

for (const how of ["--replace", "SIGTERM"]) {
  Deno.test(`the only agent is restarted without refusing a dial: ${how}`, async () => {
    await using stage = new ServerStage(await Workspace.make());
    const server = stage.start();
    await server.untilReady(`${stage.healthUrl}/healthz`);
    const healthPort = freePort();
    const flags = [
      "--v=1",
      "--agent-id=the-one",
      `--health-server-port=${healthPort}`,
    ];
    const readyUrl = `http://127.0.0.1:${healthPort}/readyz`;
    const { child: old } = await stage.launch(...flags);
    await old.untilReady(readyUrl);
    const held = await stage.connect("grpc");
    const requests = stage.requests("grpc");
    await requests.more(20);
    if (how === "SIGTERM") {
      old.signal("SIGTERM");
      await old.untilPrinted(/SIGTERM: draining, \d+ connections/);
      const answer = await fetch(readyUrl);
      assertMatch(await answer.text(), /the agent is stopping/);
    }
    const more = how === "--replace" ? [how] : [];
    const { child: young } = await stage.launch(...flags, ...more);
    await young.untilPrinted(/took over from process/);
    await old.untilPrinted(/handed over to process/);
    await young.untilReady(readyUrl);
    await requests.more(60);
    await assertAllAnswered(requests);
    held.send("still");
    await held.received(5);
    held.reset("over");
    assertEquals((await old.ended).code, 0);
    assertMatch(await old.logTail(), /the agent has ended/);
  });
}

Deno.test("a second server on one state directory is told who has it", async () => {
  const workspace = await Workspace.make();
  const state = await Deno.makeTempDir();
  const start = (name: string, ...flags: string[]) =>
    new Child({
      name,
      command: ourCommand(
        "server",
        `--state-dir=${state}`,
        ...["agent", "health", "admin"].map((port) =>
          `--${port}-port=${freePort()}`
        ),
        ...flags,
      ),
      logFile: workspace.path(name),
    });
  const first = start("first");
  await first.untilPrinted(/server started/);
  const second = start("second");
  assertEquals((await second.ended).code, 1);
  assertMatch(
    await second.logTail(),
    new RegExp(
      `runs here already \\(process ${first.pid}\\): take its place with ` +
        "--replace, or give this one a --state-dir and ports of its own",
    ),
  );
  // What was left by one that was killed is nobody's.
  await first.stop("SIGKILL");
  const third = start("third");
  await third.untilPrinted(/server started/);
  await third.stop("SIGKILL");
  await Deno.remove(state, { recursive: true });
  await workspace.remove();
});
