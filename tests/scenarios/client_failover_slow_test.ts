/**
 * Callers that name several servers, as processes: one of them is killed, stands
 * still, or has no agent, and callers are served by the other.
 *
 * @module
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { openDialer, type TunnelDialer } from "../../client/tunnel_dialer.ts";
import { TunnelDialError } from "../../client/dial_error.ts";
import type {
  FrontendAddress,
  FrontendProtocol,
  TunnelRoute,
} from "../../client/tunnel_route.ts";
import { Child } from "../support/program/child.ts";
import { Workspace } from "../support/program/workspace.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { CuttableLine } from "../support/peers/cuttable_line.ts";
import { SteadyDials } from "../support/peers/steady_dials.ts";
import { askEcho, SteadyRequests } from "../support/peers/steady_requests.ts";
import { Processes } from "../support/rigs/processes.ts";
import { sleep } from "../support/watch/event_loop.ts";
import { patience } from "../support/watch/patience.ts";

/** A line that is cut both ways, for so long: no link is given up by then. */
const CUT = ["up", "down"] as const;
const CUT_MS = 5_000;

/** Two servers, an agent of both, and an echo behind it. */
class Stage extends Processes {
  readonly port = this.echo();
  readonly one = this.addServer("s1", "--mode=auto");
  readonly two = this.addServer("s2", "--mode=auto");

  /** @param of Where the agent calls each server; absent: not at all. */
  static async open(
    of: (address: string, id: string) => string | undefined = (one) => one,
  ): Promise<Stage> {
    const stage = new Stage(await Workspace.make());
    const { servers } = stage;
    await Promise.all(servers.map((server) => server.start()));
    const called = servers.flatMap((server) => {
      const address = of(server.address, server.serverId);
      return address === undefined ? [] : [{ server, address }];
    });
    stage.agentAt(called.map(({ address }) => address));
    await Promise.all(called.map(({ server }) => server.untilLinked()));
    return stage;
  }

  /** A second one, of both servers. */
  async startSecondAgent(): Promise<Child> {
    const { servers } = this;
    const addresses = servers.map(({ address }) => address);
    const second = this.agentAt(addresses, "--agent-id=second");
    await Promise.all(servers.map((server) => server.untilLinked("second")));
    return second;
  }

  /** The servers' frontends, as `--server` names them. */
  get frontends(): string {
    return [this.one, this.two].map(({ socket }) => `unix:${socket}`).join();
  }

  dialer(protocol: FrontendProtocol): TunnelDialer {
    const [address, other] = [this.one, this.two]
      .map(({ socket }): FrontendAddress => ({ kind: "unix", path: socket }));
    const route: TunnelRoute = {
      kind: "tunnel",
      protocol,
      address: address!,
      others: [other!],
    };
    return openDialer(route);
  }

  /** An echo through the tunnel, over a connection of its own. */
  async ask(dialer: TunnelDialer, early: string): Promise<void> {
    const conduit = new ConduitProbe(
      await dialer.dial({
        target: { protocol: "tcp", address: `127.0.0.1:${this.port}` },
        timeoutMs: patience(4_000),
        ...(early === "" ? {} : { earlyData: new TextEncoder().encode(early) }),
      }),
    );
    if (early === "") conduit.send("hello");
    const ended = conduit.closed.then(({ kind }) => {
      throw new Error(`the connection was ${kind}`);
    });
    const cut = conduit.ended.then(() => {
      throw new Error("the connection was cut");
    });
    await Promise.race([conduit.received(5), ended, cut]);
    for (const late of [ended, cut]) late.catch(() => {});
    assertEquals(conduit.text, "hello");
    conduit.reset("asked enough");
  }

  /** Callers of a port of `tunnel forward`, over both servers. */
  async forwarded(protocol: FrontendProtocol): Promise<number> {
    const forward = this.run(
      "forward",
      "forward",
      `0:127.0.0.1:${this.port}`,
      `--server=${this.frontends}`,
      `--proxy-mode=${protocol}`,
    );
    const printed = await forward.untilPrinted(/127\.0\.0\.1:(\d+) ->/);
    return Number(printed[1]);
  }

  /** Each server is killed while callers ask, and is back. */
  async killInTurn(requests: SteadyRequests): Promise<void> {
    await requests.more(20);
    for (const server of [this.one, this.two]) {
      await server.stop("SIGKILL");
      await requests.more(40);
      await server.start();
      await server.untilLinked();
    }
  }
}

/** Over a socket alone, as callers go that know one server. */
function dialerOf(protocol: FrontendProtocol, path: string): TunnelDialer {
  const address = { kind: "unix", path } as const;
  return openDialer({ kind: "tunnel", protocol, address });
}

for (const protocol of ["grpc", "http-connect"] as const) {
  Deno.test(`callers over ${protocol} go to the other server when one is killed, and back`, async () => {
    await using stage = await Stage.open();
    const dialer = stage.dialer(protocol);
    const held = new ConduitProbe(
      await dialer.dial({
        target: { protocol: "tcp", address: `127.0.0.1:${stage.port}` },
      }),
    );
    const requests = new SteadyRequests(() => stage.ask(dialer, ""), 4);
    await stage.killInTurn(requests);
    const { answered, failures } = await requests.stop();
    // Those that were open on the dead server end so; a socket alone cannot
    // tell a loss from a reset, or from an end.
    const cut = /^the connection was (?:lost|reset|cut)$/;
    const others = [...failures].filter(([why]) => !cut.test(why));
    assertEquals(others, [], `${answered} were answered`);
    let count = 0;
    for (const one of failures.values()) count += one;
    assert(count <= 8, `${count} were cut`);
    if (protocol === "grpc") assertEquals((await held.closed).kind, "lost");
    else await held.ended;
    dialer.close();
  });

  Deno.test(`a server that stands still costs a caller over ${protocol} a second, once`, async () => {
    await using stage = await Stage.open();
    const dialer = stage.dialer(protocol);
    await stage.ask(dialer, "hello");
    // Longer than what makes a server's word fresh.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    stage.one.child.signal("SIGSTOP");
    for (
      const [early, mostMs] of [["hello", 3_000], ["", 500], [
        "hello",
        500,
      ]] as const
    ) {
      const startedMs = performance.now();
      await stage.ask(dialer, early);
      const tookMs = performance.now() - startedMs;
      assert(tookMs < patience(mostMs), `it took ${tookMs} ms`);
    }
    stage.one.child.signal("SIGCONT");
    dialer.close();
  });

  Deno.test(`callers over ${protocol} that speak first lose next to nothing to what stands still`, async () => {
    await using stage = await Stage.open();
    const agent = await stage.startSecondAgent();
    const dialer = stage.dialer(protocol);
    const dials = new SteadyDials(() => stage.ask(dialer, "hello"));
    await sleep(2_000);
    for (const frozen of [stage.one.child, agent, stage.two.child]) {
      await dials.during(
        () => frozen.signal("SIGSTOP"),
        () => frozen.signal("SIGCONT"),
        { brokenMs: 5_000, mendedMs: 2_000 },
      );
    }
    await dials.stop();
    dialer.close();
    // Those whose words were under way when it stopped: one, or none, mostly.
    const { failures, slowestMs } = dials;
    assert(failures.length <= 3, failures.join("\n"));
    assert(slowestMs < patience(3_000), `${slowestMs} ms`);
  });

  for (const delayMs of [0, 15]) {
    Deno.test(`a cut line of the one agent, ${delayMs} ms away, costs ${protocol} next to nothing`, async () => {
      const lines: CuttableLine[] = [];
      await using stage = await Stage.open((address) => {
        const line = new CuttableLine(Number(address.split(":")[1]));
        line.delayMs = delayMs;
        lines.push(line);
        return `127.0.0.1:${line.port}`;
      });
      const port = await stage.forwarded(protocol);
      const dials = new SteadyDials(askEcho(port));
      await sleep(1_000);
      for (const line of lines) {
        await dials.during(
          () => CUT.forEach((way) => line.block(way)),
          () => CUT.forEach((way) => line.unblock(way)),
          { brokenMs: CUT_MS, mendedMs: 1_500 },
        );
      }
      await dials.stop();
      for (const line of lines) line.close();
      // Those whose words were under way, and are lost or wait for the line: next
      // to none to an agent that is near, and some of one round trip else.
      const { failures, tookMs } = dials;
      const lateMs = patience(3_000);
      const late = tookMs.filter((ms) => ms > lateMs && ms < CUT_MS);
      assertEquals(late, []);
      // On a slow machine a dial takes as long as a cut, and is served.
      const waitedMs = Math.max(CUT_MS, lateMs);
      const lost = tookMs.filter((ms) => ms >= waitedMs).length +
        failures.length;
      const lostMax = (delayMs === 0 ? 1 : 4) * lines.length;
      assert(lost <= lostMax, `${lost} of ${tookMs.length}: ${failures}`);
    });
  }

  Deno.test(`a server without the agent is followed by the next, over ${protocol}`, async () => {
    await using stage = await Stage.open((address, id) =>
      id === "s2" ? address : undefined
    );
    const dialer = stage.dialer(protocol);
    for (let count = 0; count < 10; count++) await stage.ask(dialer, "hello");
    // Nobody serves this one.
    const error = await assertRejects(
      () =>
        dialer.dial({
          target: { protocol: "tcp", address: "127.0.0.1:1" },
          node: "nobody",
        }),
      TunnelDialError,
    );
    assertEquals(error.reason, "endpoint");
    assertMatch(error.message, /no agent serves.*nobody/);
    for (const { socket } of [stage.one, stage.two]) {
      assert(error.message.includes(socket), error.message);
    }
    // What the target says is final, and told as it is.
    const refused = await assertRejects(
      () =>
        dialer.dial({ target: { protocol: "tcp", address: "127.0.0.1:1" } }),
      TunnelDialError,
    );
    assertMatch(refused.message, /connection refused/);
    dialer.close();
  });
}

for (const protocol of ["grpc", "http-connect"] as const) {
  Deno.test(`no caller of tunnel forward over ${protocol} fails while servers are restarted in order`, async () => {
    await using stage = await Stage.open();
    const port = await stage.forwarded(protocol);
    const requests = new SteadyRequests(askEcho(port), 4);
    await requests.more(20);
    for (const server of [stage.one, stage.two, stage.one]) {
      await server.stop("SIGTERM");
      await server.start();
      await server.untilLinked();
      await requests.more(20);
    }
    await requests.mustBeAnswered(80);
  });
}

Deno.test("callers that know one socket are served by the server that lives", async () => {
  await using stage = await Stage.open();
  const socket = stage.workspace.path("gate.sock");
  const forward = stage.run(
    "gateway",
    "forward",
    `--frontend=unix:${socket}`,
    `--server=${stage.frontends}`,
  );
  await forward.untilPrinted(/gate\.sock -> grpc over unix:.*, unix:/);
  const { mode } = await Deno.stat(socket);
  assertEquals(mode! & 0o777, 0o770);
  for (const protocol of ["grpc", "http-connect"] as const) {
    // A connection each, as kube-apiserver makes them.
    const requests = new SteadyRequests(async () => {
      const dialer = dialerOf(protocol, socket);
      try {
        await stage.ask(dialer, "");
      } finally {
        dialer.close();
      }
    }, 4);
    await stage.killInTurn(requests);
    const { answered, failures } = await requests.stop();
    const cut = /^the connection was (?:lost|reset|cut)$/;
    const others = [...failures].filter(([why]) => !cut.test(why));
    assertEquals(others, [], `${answered} were answered`);
  }
  // Both are away: that is said in one line that names both.
  await Promise.all([stage.one, stage.two].map((one) => one.stop("SIGKILL")));
  const dialer = dialerOf("http-connect", socket);
  const target = { protocol: "tcp", address: `127.0.0.1:${stage.port}` };
  const { message } = await assertRejects(
    () => dialer.dial({ target }),
    TunnelDialError,
  );
  for (const { socket } of [stage.one, stage.two]) {
    assert(message.includes(socket), message);
  }
});
