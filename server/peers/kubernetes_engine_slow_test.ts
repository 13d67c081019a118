import { assert, assertEquals } from "@std/assert";
import type { KubernetesClient } from "../../neighbours/kubernetes/client.ts";
import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  type OpenMember,
  TestMember,
} from "../../tests/support/rigs/test_member.ts";
import { eventually } from "../../tests/support/rigs/tunnel_harness.ts";
import {
  FakeApiServer,
  plainClient,
} from "../../tests/support/peers/fake_apiserver.ts";
import { KubernetesEngine } from "./kubernetes_engine.ts";

const TIMEOUT_MS = 1_200;

/** What the API server says instead of the truth. */
type Lie = "none" | "empty lists" | "500";

/** Servers at an API server that may lie. */
class Rig implements AsyncDisposable {
  readonly server = FakeApiServer.start();
  lie: Lie = "none";
  readonly #clients: KubernetesClient[] = [];

  readonly open: OpenMember = (who) => {
    const client = plainClient(this.server.url, systemTimers);
    this.#clients.push(client);
    const engine = new KubernetesEngine({
      ...who,
      client: this.#lying(client),
      namespace: "edge",
      labels: { "k8s-app": "konnectivity-server" },
      timeoutMs: TIMEOUT_MS,
      timers: systemTimers,
      random: Math.random,
      wallClock: Date.now,
      metrics: new MetricRegistry(),
    });
    return { engine, cut: () => {} };
  };

  #lying(client: KubernetesClient): KubernetesClient {
    const failure = new KubernetesError(500, "", "Cannot ask: it failed");
    return {
      get: (path: string, options: never) =>
        this.lie === "500"
          ? Promise.reject(failure)
          : this.lie === "empty lists" && path.endsWith("/leases")
          ? Promise.resolve({ metadata: { resourceVersion: "9" }, items: [] })
          : client.get(path, options),
      stream: (path: string, options: never) =>
        this.lie === "none"
          ? client.stream(path, options)
          : Promise.reject(new KubernetesError(410, "Expired", "too old")),
      create: client.create.bind(client),
      replace: client.replace.bind(client),
      delete: client.delete.bind(client),
    } as unknown as KubernetesClient;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client[Symbol.dispose]();
    await this.server[Symbol.asyncDispose]();
  }
}

for (const lie of ["empty lists", "500"] as const) {
  Deno.test(`servers stay known while the API server lies: 410, then ${lie}`, async () => {
    await using rig = new Rig();
    await using one = new TestMember(rig.open, "one");
    await using two = new TestMember(rig.open, "two");
    await one.sees("two");
    await two.sees("one");
    rig.lie = lie;
    for (let watches = 0; watches < 2; watches++) {
      (await rig.server.nextWatch()).end();
    }
    for (let looks = 0; looks < 20; looks++) {
      await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS / 8));
      assertEquals([one.others, two.others], ["two", "one"], lie);
    }
    assert(one.said.length <= 1, one.said.join("\n"));
    rig.lie = "none";
    const three = new TestMember(rig.open, "three");
    await one.sees("three,two");
    await three[Symbol.asyncDispose]();
    await eventually("it is followed again", () => one.said.length !== 1);
  });
}
