/**
 * Callers that name several servers, as processes, or one gateway before them:
 * one is killed, and they are served by the other.
 *
 * @module
 */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { openDialer, type TunnelDialer } from "../../client/tunnel_dialer.ts";
import { TunnelDialError } from "../../client/dial_error.ts";
import type {
  FrontendAddress,
  FrontendProtocol,
  TunnelRoute,
} from "../../client/tunnel_route.ts";
import { Workspace } from "../support/program/workspace.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { SteadyRequests } from "../support/peers/steady_requests.ts";
import { Processes } from "../support/rigs/processes.ts";
import { patience } from "../support/watch/patience.ts";

/** Two servers, an agent of both, and an echo behind it. */
class Stage extends Processes {
  readonly port = this.echo();
  readonly one = this.addServer("s1", "--mode=auto");
  readonly two = this.addServer("s2", "--mode=auto");

  static async open(): Promise<Stage> {
    const stage = new Stage(await Workspace.make());
    const { servers } = stage;
    await Promise.all(servers.map((server) => server.start()));
    stage.agentAt(servers.map(({ address }) => address));
    await Promise.all(servers.map((server) => server.untilLinked()));
    return stage;
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
  async ask(dialer: TunnelDialer): Promise<void> {
    const conduit = new ConduitProbe(
      await dialer.dial({
        target: { protocol: "tcp", address: `127.0.0.1:${this.port}` },
        timeoutMs: patience(4_000),
      }),
    );
    conduit.send("hello");
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
    const requests = new SteadyRequests(() => stage.ask(dialer), 4);
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
        await stage.ask(dialer);
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
