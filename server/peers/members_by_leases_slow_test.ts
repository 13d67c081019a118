import { assert, assertEquals } from "@std/assert";
import type {
  KubernetesClient,
  RequestOptions,
} from "../../neighbours/kubernetes/client.ts";
import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
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
import { LEASES, objectPathOf } from "../../neighbours/kubernetes/paths.ts";
import type { Lease, ObjectList } from "../../neighbours/kubernetes/objects.ts";
import { rememberedAgent } from "../../tests/support/memory/remembered_agent.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { SharedOffers } from "../discovery/membership/shared_offers.ts";
import { EphemeralTexts } from "../../neighbours/store/ephemerals.ts";
import {
  KubernetesEphemerals,
  type KubernetesEphemeralsOptions,
} from "../../neighbours/store/kubernetes_ephemerals.ts";

const TIMEOUT_MS = 1_200;

/** What the API server says instead of the truth. */
type Lie = "none" | "empty lists" | "500";

function leases(
  options: Pick<
    KubernetesEphemeralsOptions,
    "client" | "topic" | "serverId" | "instanceId"
  >,
): EphemeralTexts {
  const speaker = { ...options, timeoutMs: TIMEOUT_MS, timers: systemTimers };
  const place = new KubernetesEphemerals({
    ...speaker,
    namespace: "edge",
    labels: { "k8s-app": "konnectivity-server" },
    random: Math.random,
    wallClock: Date.now,
  });
  return new EphemeralTexts(place, speaker);
}

/** Servers at an API server that may lie. */
class Rig implements AsyncDisposable {
  readonly server = FakeApiServer.start();
  lie: Lie = "none";
  readonly #clients: KubernetesClient[] = [];

  readonly open: OpenMember = (who) => {
    const client = plainClient(this.server.url, systemTimers);
    this.#clients.push(client);
    const ephemerals = leases({
      ...who,
      client: this.#lying(selecting(client)),
      topic: "peers",
    });
    return { ephemerals, cut: () => {} };
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

Deno.test("what agents offer is told by Leases that are nobody's members", async () => {
  await using rig = new Rig();
  await using member = new TestMember(rig.open, "one");
  const plain = plainClient(rig.server.url, systemTimers);
  const client = selecting(plain);
  const server = (serverId: string) => {
    const instanceId = crypto.randomUUID().replaceAll("-", "");
    const ephemerals = leases({
      ...{ client, topic: "offers", serverId, instanceId },
    });
    const log = new RecordedLog();
    const offers = new SharedOffers({
      ...{ ephemerals, serverId, instanceId, log, now: Date.now },
    });
    offers.start(() => {});
    return offers;
  };
  const states = ({ current }: SharedOffers) =>
    [...current.values()].map(({ id, state }) => `${id} ${state}`).join();
  const [one, two] = [server("one"), server("two")];
  try {
    // The fake one tells a watch nothing of before it.
    for (let watches = 0; watches < 3; watches++) await rig.server.nextWatch();
    await one.save([rememberedAgent("a", "ready")]);
    await eventually("it is heard", () => states(two) === "a ready");
    await one.save([rememberedAgent("a", "serving")]);
    await eventually("it is heard again", () => states(two) === "a serving");
    assertEquals([states(one), member.others], ["", ""]);
    const found = await plain.get<ObjectList<Lease>>(
      objectPathOf(LEASES, { namespace: "edge" }),
      { timeoutMs: 5_000 },
    );
    const known = (found.items ?? []).filter(({ metadata }) =>
      metadata.labels?.["k8s-app"] !== undefined
    );
    assertEquals(
      known.map(({ metadata }) => metadata.name),
      ["konnectivity-proxy-server-one"],
    );
    await one.stop();
    await eventually("it is gone", () => states(two) === "a unready");
  } finally {
    await Promise.all([one.stop(), two.stop()]);
    plain[Symbol.dispose]();
  }
});

/** Lists what a selector of names and values asks for: the fake one lists all. */
function selecting(client: KubernetesClient): KubernetesClient {
  return {
    async get(path: string, options: RequestOptions) {
      const found = await client.get<ObjectList<Lease>>(path, options);
      const wanted = options.query?.["labelSelector"];
      if (wanted === undefined) return found;
      const terms = wanted.split(",").map((term) => term.split("="));
      const items = (found.items ?? []).filter(({ metadata }) =>
        terms.every(([key = "", value]) => {
          const has = metadata.labels?.[key];
          return value === undefined ? has !== undefined : has === value;
        })
      );
      return { ...found, items };
    },
    stream: client.stream.bind(client),
    create: client.create.bind(client),
    replace: client.replace.bind(client),
    delete: client.delete.bind(client),
  } as unknown as KubernetesClient;
}
