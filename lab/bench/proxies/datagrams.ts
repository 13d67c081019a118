/**
 * Datagrams through a service proxy: how many are answered, and what ten
 * thousand sessions cost in memory.
 *
 * @module
 */

import { freePort } from "../../../tests/support/program/ports.ts";
import type { Contender } from "../contender.ts";
import { generate, type Sample, SpoiledRunError } from "../generator.ts";
import { less, type Metric, more, type Scale } from "../metric.ts";
import {
  childrenOf,
  usageOf,
} from "../../../tests/support/program/processes.ts";
import { PROXIES, startProxy } from "./start_proxy.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

const SESSIONS = 10_000;
const SESSIONS_QUICK = 2_000;

/** Beside its socket, which is the kernel's. */
const SESSION_KIB_MAX = 6;

/** Clients that wait for their first answer at the same time. */
const ASKING_MAX = 64;

const ANSWER_TIMEOUT_MS = 1_000;
const TRIES_MAX = 10;
const SETTLE_MS = 3_000;

/**
 * Ours gives garbage back to the system when nothing has happened for a while,
 * see `net/libc/memory_relief.ts`.
 */
const RELIEF_MS = 45_000;

async function echo(
  { name, workspace }: Contender,
  { isQuick }: Scale,
): Promise<Sample> {
  const target = `127.0.0.1:${freePort()}`;
  const config = { workspace, protocol: "udp", targets: [target] } as const;
  const proxy = await startProxy(name, config);
  try {
    return await generate({
      workspace,
      program: "linegen",
      flags: [
        ...["udp", `-target=${target}`, `-addr=127.0.0.1:${proxy.port}`],
        ...["-kind=echo", "-size=64", `-d=${isQuick ? 2 : 4}s`],
      ],
      pieces: proxy.pieces,
    });
  } finally {
    await proxy.stop();
  }
}

/** Memory of everything that serves, the children included that nginx has. */
async function memoryOf(pids: readonly number[]): Promise<number> {
  const usages = await Promise.all(pids.map(usageOf));
  return usages.reduce((total, { rssBytes }) => total + rssBytes, 0);
}

async function sessions(
  { name, workspace }: Contender,
  { isQuick }: Scale,
): Promise<Sample> {
  using target = new EchoTarget();
  const config = { workspace, protocol: "udp" } as const;
  const proxy = await startProxy(name, {
    ...config,
    targets: [target.address],
  });
  const count = isQuick ? SESSIONS_QUICK : SESSIONS;
  const clients: Deno.DatagramConn[] = [];
  try {
    // What every load needs once is no session's.
    await openSessions(clients, proxy.port, ASKING_MAX);
    await sleep(SETTLE_MS);
    const { pid } = proxy.pieces[0]!;
    const pids = [pid, ...childrenOf(pid)];
    const before = await memoryOf(pids);
    const begun = performance.now();
    await openSessions(clients, proxy.port, count);
    const seconds = (performance.now() - begun) / 1_000;
    await sleep(name === "ours" && !isQuick ? RELIEF_MS : SETTLE_MS);
    const after = await memoryOf(pids);
    if (target.callers < count + ASKING_MAX) {
      throw new SpoiledRunError(`the target saw ${target.callers} callers`);
    }
    return {
      kib_per_session: (after - before) / 1_024 / count,
      per_s: count / seconds,
      rss_mib: after / 2 ** 20,
    };
  } finally {
    for (const client of clients) client.close();
    await proxy.stop();
  }
}

/** Answers everybody, and counts them. */
class EchoTarget implements Disposable {
  readonly #socket = Deno.listenDatagram({
    ...{ transport: "udp", hostname: "127.0.0.1", port: 0 },
  });
  readonly #callers = new Set<number>();

  constructor() {
    void this.#serve();
  }

  get callers(): number {
    return this.#callers.size;
  }

  get address(): string {
    return `127.0.0.1:${(this.#socket.addr as Deno.NetAddr).port}`;
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }

  async #serve(): Promise<void> {
    for await (const [bytes, from] of this.#socket) {
      this.#callers.add((from as Deno.NetAddr).port);
      await this.#socket.send(bytes, from);
    }
  }
}

async function openSessions(
  clients: Deno.DatagramConn[],
  port: number,
  count: number,
): Promise<void> {
  let left = count;
  const one = async () => {
    while (left-- > 0) clients.push(await openSession(port));
  };
  await Promise.all(Array.from({ length: ASKING_MAX }, one));
}

/** @throws {SpoiledRunError} When nobody answers. */
async function openSession(port: number): Promise<Deno.DatagramConn> {
  const client = Deno.listenDatagram({
    ...{ transport: "udp", hostname: "127.0.0.1", port: 0 },
  });
  const to = { transport: "udp", hostname: "127.0.0.1", port } as const;
  const answer = client.receive();
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    await client.send(new Uint8Array(64), to);
    const late = sleep(ANSWER_TIMEOUT_MS).then(() => "late" as const);
    if (await Promise.race([answer, late]) !== "late") return client;
  }
  client.close();
  await answer.catch(() => {});
  throw new SpoiledRunError(`no answer to ${TRIES_MAX} datagrams`);
}

export const DATAGRAM_METRICS: Readonly<Record<string, Metric>> = {
  "proxy-udp-echo": {
    title: "service proxy: UDP, 64 B there and back, 8 callers, 8 under way",
    contenders: PROXIES,
    isOnRequest: true,
    figures: [
      more("per_s", "answers", "/s", { bars: { N: 1 } }),
      less("lost_at_half", "lost at half", "", { limit: 0 }),
    ],
    run: echo,
  },
  "proxy-udp-sessions": {
    title: "service proxy: UDP sessions that are idle",
    contenders: PROXIES,
    isOnRequest: true,
    figures: [
      less("kib_per_session", "memory", "KB each", { limit: SESSION_KIB_MAX }),
      more("per_s", "new ones", "/s"),
      less("rss_mib", "memory in all", "MiB"),
    ],
    run: sessions,
  },
};
