/**
 * A process that has nothing to do is asked to end while the next one is started
 * beside it (`kill OLD; NEW &`), of real processes, with short connections that come
 * all the time: nobody is refused, and nobody who was queued is reset.
 */

import { assert, assertEquals } from "@std/assert";
import { SUCCESSOR_MS } from "../../net/program/drain.ts";
import type { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ProxyStage } from "../support/rigs/proxy_stage.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { askEcho, SteadyRequests } from "../support/peers/steady_requests.ts";

/** How often each is restarted in time. */
const ROUNDS = 4;

/** A machine that is too busy to start a process in time shows nothing. */
const TRIES_MAX = 12;

/** What is restarted. */
interface Restarted {
  first: Child;
  start(): Promise<Child> | Child;
  requests(): SteadyRequests;
}

/** Settles when that was shown so often. @returns Who runs now. */
async function restart({ first, start, requests }: Restarted): Promise<Child> {
  let old = first;
  let rounds = 0;
  for (let tries = 0; tries < TRIES_MAX && rounds < ROUNDS; tries++) {
    const asking = requests();
    await asking.more(20);
    const startedMs = performance.now();
    old.signal("SIGTERM");
    const young = await start();
    await young.untilPrinted(/takes over from process|started/);
    const isInTime = performance.now() - startedMs < SUCCESSOR_MS;
    const status = await old.ended;
    if (isInTime) {
      await young.untilPrinted(/took over from process/);
      assertEquals(status.code, 0);
    }
    await asking.more(20);
    const { answered, failures } = await asking.stop();
    old = young;
    if (!isInTime) continue;
    rounds++;
    assertEquals(Object.fromEntries(failures), {}, `${answered} were answered`);
  }
  return old;
}

Deno.test("an idle proxy that is restarted refuses nobody", async () => {
  await using stage = await ProxyStage.open();
  const first = stage.start();
  await first.untilReady(stage.readyUrl);
  const last = await restart({
    first,
    start: () => stage.start(),
    requests: () => new SteadyRequests(askEcho(stage.port), 2, 5),
  });
  const startedMs = performance.now();
  last.signal("SIGTERM");
  await last.untilPrinted(/ended: /);
  const tookMs = performance.now() - startedMs;
  assert(tookMs >= SUCCESSOR_MS, `it was away after ${tookMs} ms`);
});

Deno.test("an idle server that is restarted refuses nobody", async () => {
  await using stage = await TunnelProcesses.open();
  const first = await stage.listening();
  await stage.addAgents(1);
  await restart({
    first,
    start: () => stage.start(),
    requests: () => stage.requests("grpc", 50),
  });
});

Deno.test("the health port of an agent without a server is served through a restart", async () => {
  await using stage = await TunnelProcesses.open();
  const server = await stage.listening();
  const port = freePort();
  const flags = ["--v=1", "--agent-id=one", `--health-server-port=${port}`];
  const { child: first } = await stage.launchAgent(...flags);
  await first.untilReady(`http://127.0.0.1:${port}/readyz`);
  await server.stop("SIGKILL");
  await restart({
    first,
    start: async () => (await stage.launchAgent(...flags)).child,
    requests: () =>
      new SteadyRequests(
        async () => {
          const { body } = await fetch(`http://127.0.0.1:${port}/healthz`);
          await body?.cancel();
        },
        2,
        5,
      ),
  });
});
