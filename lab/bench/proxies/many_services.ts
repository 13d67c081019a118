/**
 * A thousand services with ten endpoints each: how long a start takes, how long
 * a change, and how much memory.
 *
 * @module
 */

import { freePort } from "../../../tests/support/program/ports.ts";
import {
  type ServiceConfig,
  ServiceProxyProcess,
} from "../../peers/service_proxy.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { type Sample, SpoiledRunError } from "../generator.ts";
import { median } from "../comparison.ts";
import { less, type Metric } from "../metric.ts";
import { usageOf } from "../../../tests/support/program/processes.ts";
import { arrivals } from "../../../tests/support/peers/sockets.ts";

const SERVICES = 1_000;
const ENDPOINTS = 10;
const CHANGES = 10;
const SETTLE_MS = 3_000;
const TIMEOUT_MS = 20_000;

/** Says its name to whoever connects. */
class Target implements Disposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });

  constructor(readonly name: string) {
    void this.#serve();
  }

  get address(): string {
    return `127.0.0.1:${this.#listener.addr.port}`;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
  }

  async #serve(): Promise<void> {
    for await (const conn of arrivals(this.#listener)) {
      // A caller that is gone has its answer.
      conn.write(new TextEncoder().encode(this.name)).catch(() => {})
        .finally(() => conn.close());
    }
  }
}

async function whoAnswers(port: number): Promise<string> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  const name = new Uint8Array(16);
  const count = await conn.read(name);
  return new TextDecoder().decode(name.subarray(0, count ?? 0));
}

/** Milliseconds until `port` is answered by `name`. */
async function untilAnswer(port: number, name: string): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const answer = await whoAnswers(port).catch(() => "");
    const ms = performance.now() - begun;
    if (answer === name) return ms;
    if (ms > TIMEOUT_MS) {
      throw new SpoiledRunError(`"${answer}" answers and not ${name}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** All of them, of which the last has `last` for its endpoints. */
function servicesOf(
  ports: readonly number[],
  last: string,
): readonly ServiceConfig[] {
  return ports.map((listen, at) => ({
    name: `service-${String(at).padStart(4, "0")}`,
    listen,
    endpoints: at === ports.length - 1
      ? [last]
      : Array.from({ length: ENDPOINTS }, (_, one) =>
        `10.${at >> 8}.${at & 255}.${one + 1}:8080`),
  }));
}

async function many(workspace: Workspace, isQuick: boolean): Promise<Sample> {
  using first = new Target("first");
  using second = new Target("second");
  const ports = Array.from({ length: SERVICES }, () => freePort());
  const probed = ports.at(-1)!;
  const begun = performance.now();
  const proxy = await ServiceProxyProcess.launch(
    workspace,
    servicesOf(ports, first.address),
  );
  try {
    await untilAnswer(probed, "first");
    const startMs = performance.now() - begun;
    await proxy.untilServed(SERVICES);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const { rssBytes } = await usageOf(proxy.child.pid);
    const took: number[] = [];
    for (let change = 0; change < (isQuick ? 4 : CHANGES); change++) {
      const target = change % 2 === 0 ? second : first;
      await proxy.rewrite(servicesOf(ports, target.address));
      took.push(await untilAnswer(probed, target.name));
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    const after = await usageOf(proxy.child.pid);
    return {
      start_ms: startMs,
      update_ms: median(took),
      rss_mib: rssBytes / 2 ** 20,
      rss_after_mib: after.rssBytes / 2 ** 20,
    };
  } finally {
    await proxy.stop();
  }
}

export const MANY_SERVICES_METRICS: Readonly<Record<string, Metric>> = {
  "proxy-many": {
    title: "service proxy: 1,000 services with 10 endpoints each",
    contenders: ["ours"],
    isOnRequest: true,
    figures: [
      less("start_ms", "start", "ms", { limit: 1_000 }),
      less("update_ms", "change in the file", "ms", { limit: 50 }),
      less("rss_mib", "memory", "MiB", { limit: 150 }),
      less("rss_after_mib", "after changes", "MiB", { limit: 150 }),
    ],
    run: ({ workspace }, { isQuick }) => many(workspace, isQuick),
  },
};
