import { assertEquals, assertStringIncludes } from "@std/assert";
import { RENEW_MS } from "./paths.ts";
import type { Lease } from "./objects.ts";
import {
  failure,
  FakeApiServer,
  plainClient,
} from "../../tests/support/peers/fake_apiserver.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ServerLease } from "./server_lease.ts";

const LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const OURS = `${LEASES}/konnectivity-proxy-server-s1`;
const NOW_MS = Date.UTC(2026, 10, 21, 7, 47, 37, 113);

class Rig implements AsyncDisposable {
  readonly server = FakeApiServer.start();
  readonly timers = new FakeTimers();
  readonly counts: string[] = [];
  readonly warnings: string[] = [];
  readonly lease: ServerLease;
  readonly #client = plainClient(this.server.url, this.timers);
  nowMs = NOW_MS;

  constructor() {
    this.lease = new ServerLease({
      client: this.#client,
      serverId: "s1",
      namespace: "kube-system",
      labels: { "k8s-app": "konnectivity-server" },
      timers: this.timers,
      wallClock: () => this.nowMs,
      observer: {
        listed: (code) => this.counts.push(`listed ${code}`),
        deleted: (code) => this.counts.push(`deleted ${code}`),
        culled: () => this.counts.push("culled"),
        taken: () => this.counts.push("taken"),
        warn: (message) => this.warnings.push(message),
      },
    });
  }

  get ours(): Lease | undefined {
    return this.server.find(OURS) as Lease | undefined;
  }

  /** Starts, or lets a renewal come, and waits until it is done. */
  async round(): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.timers.onSet = (delayMs) => {
      if (delayMs === RENEW_MS) done.resolve();
    };
    this.nowMs += RENEW_MS;
    if (this.timers.pendingCount === 0) this.lease.start();
    else this.timers.advance(RENEW_MS);
    await done.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lease.stop();
    this.#client[Symbol.dispose]();
    await this.server[Symbol.asyncDispose]();
    assertEquals(this.timers.pendingCount, 0);
  }
}

function lease(name: string, renewTime?: string) {
  return {
    metadata: { name, labels: { "k8s-app": "konnectivity-server" } },
    spec: {
      holderIdentity: name,
      leaseDurationSeconds: 30,
      ...(renewTime === undefined ? {} : { renewTime }),
    },
  };
}

Deno.test("a lease is made as upstream makes it, and renewed", async () => {
  await using rig = new Rig();
  await rig.round();
  const { metadata, spec } = rig.ours!;
  assertEquals(metadata.labels, { "k8s-app": "konnectivity-server" });
  assertEquals(spec, {
    holderIdentity: "s1",
    leaseDurationSeconds: 30,
    renewTime: "2026-11-21T07:47:52.113000Z",
  });
  await rig.round();
  assertEquals(rig.ours!.spec?.renewTime, "2026-11-21T07:48:07.113000Z");
  assertEquals(rig.server.log, [
    `POST ${LEASES}`,
    `GET ${LEASES}`,
    `PUT ${OURS}`,
    `GET ${LEASES}`,
  ]);
  assertEquals(
    rig.server.requests[1]!.query.get("labelSelector"),
    "k8s-app=konnectivity-server",
  );
});

Deno.test("a lease of an earlier life is taken over, a deleted one made again", async () => {
  await using rig = new Rig();
  const old = lease("konnectivity-proxy-server-s1", "2026-01-01T00:00:00Z");
  rig.server.put(LEASES, old);
  await rig.round();
  assertStringIncludes(rig.ours!.spec!.renewTime!, "07:47:52");
  rig.server.remove(LEASES, "konnectivity-proxy-server-s1");
  await rig.round();
  assertStringIncludes(rig.ours!.spec!.renewTime!, "07:48:07");
  // Somebody has changed it: what they wrote beside ours stays.
  rig.server.put(LEASES, {
    metadata: { ...rig.ours!.metadata, labels: { team: "edge" } },
  });
  await rig.round();
  assertEquals(rig.ours!.metadata.labels, {
    team: "edge",
    "k8s-app": "konnectivity-server",
  });
  assertEquals(rig.warnings, []);
});

Deno.test("leases that have expired, or say nothing of time, are removed", async () => {
  await using rig = new Rig();
  rig.server.put(LEASES, lease("old", "2026-11-21T07:47:00.000000Z"));
  rig.server.put(LEASES, lease("timeless"));
  rig.server.put(LEASES, lease("alive", "2026-11-21T07:47:40.000000Z"));
  await rig.round();
  const left = ["old", "timeless", "alive"]
    .filter((name) => rig.server.find(`${LEASES}/${name}`) !== undefined);
  assertEquals(left, ["alive"]);
  assertEquals(rig.counts.filter((count) => count === "culled").length, 2);
});

Deno.test("a lease that is renewed while it is removed stays", async () => {
  await using rig = new Rig();
  await rig.round();
  rig.server.put(LEASES, lease("slow", "2026-11-21T07:47:00.000000Z"));
  const conflict = () => failure(409, "Conflict", "renewed");
  rig.server.failNext(
    (seen) => {
      const { metadata, spec } = seen.body as Lease;
      return Response.json({ metadata, spec });
    },
    () =>
      Response.json({
        metadata: {},
        items: [rig.server.find(`${LEASES}/slow`)],
      }),
    conflict,
  );
  await rig.round();
  const { body } = rig.server.requests.at(-1)!;
  const { resourceVersion } = rig.server.find(`${LEASES}/slow`)!.metadata;
  assertEquals((body as { preconditions?: unknown }).preconditions, {
    resourceVersion,
  });
  assertEquals(rig.warnings, []);
  assertEquals(rig.counts.includes("culled"), false);
});

Deno.test("an API server that refuses is reported once, and asked again", async () => {
  await using rig = new Rig();
  const refuse = () => failure(403, "Forbidden", "cannot create leases");
  rig.server.failNext(refuse, refuse, refuse, refuse);
  await rig.round();
  await rig.round();
  assertEquals(rig.warnings.length, 1);
  assertStringIncludes(rig.warnings[0]!, "cannot renew the server's lease");
  await rig.round();
  assertEquals(rig.ours?.spec?.holderIdentity, "s1");
});

Deno.test("a server that ends deletes its lease", async () => {
  const rig = new Rig();
  await rig.round();
  await rig.lease.stop();
  assertEquals(rig.ours, undefined);
  await rig[Symbol.asyncDispose]();
  assertEquals(rig.warnings, []);
});

Deno.test("a second process with this server's id is said once, a successor is not", async () => {
  await using rig = new Rig();
  await rig.round();
  const other = () => {
    const { metadata, spec } = rig.ours!;
    const renewTime = new Date(rig.nowMs + 7_000).toISOString();
    const renewed = { metadata, spec: { ...spec, renewTime } };
    rig.server.put(LEASES, renewed);
  };
  const taken = () => rig.counts.filter((one) => one === "taken").length;
  for (const [round, warnings] of [0, 0, 1, 1].entries()) {
    other();
    await rig.round();
    assertEquals([taken(), rig.warnings.length], [round + 1, warnings]);
  }
  assertStringIncludes(rig.warnings[0]!, 'id "s1" and renews the same lease');
  // It has got an id of its own: from the beginning.
  await rig.round();
  other();
  await rig.round();
  assertEquals([taken(), rig.warnings.length], [5, 1]);
});
