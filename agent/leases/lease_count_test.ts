import { assertEquals } from "@std/assert";
import type { Lease } from "../../neighbours/kubernetes/objects.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ServerLeases } from "./lease_count.ts";

const NOW_MS = Date.UTC(2026, 10, 21, 8);

function setUp() {
  const clock = new FakeTimers();
  let news = 0;
  const told: (number | undefined)[] = [];
  const leases = new ServerLeases({
    clock,
    wallClock: () => NOW_MS,
    onChanged: (areMore) => {
      told.push(leases.count);
      if (areMore) news++;
    },
  });
  return { clock, leases, told, news: () => news };
}

/** Renewed so many seconds ago by the server's clock. */
function lease(name: string, agoSeconds: number, seconds = 30): Lease {
  const renewTime = new Date(NOW_MS - agoSeconds * 1000).toISOString();
  return {
    metadata: { name },
    spec: { renewTime, leaseDurationSeconds: seconds },
  };
}

const added = (object: Lease) => ({ type: "added", object } as const);
const updated = (object: Lease) =>
  ({ type: "updated", object, previous: object }) as const;

Deno.test("leases count while they hold, and at least one server is assumed", () => {
  const { clock, leases, news } = setUp();
  assertEquals(leases.count, undefined);
  leases.changed([
    added(lease("a", 0)),
    added(lease("b", 20)),
    added(lease("expired", 31)),
    added({ metadata: { name: "timeless" } }),
  ]);
  assertEquals(leases.count, undefined, "there may be more pages");
  leases.synced();
  assertEquals([leases.count, news()], [2, 1]);
  clock.advance(10_000);
  assertEquals(leases.count, 1);
  clock.advance(60_000);
  assertEquals(leases.count, 1);
});

Deno.test("acquireTime stands in for a renewTime that is not there", () => {
  const { leases } = setUp();
  const acquireTime = new Date(NOW_MS).toISOString();
  const spec = { acquireTime, leaseDurationSeconds: 30 };
  leases.changed([
    added(lease("a", 0)),
    added({ metadata: { name: "b" }, spec }),
  ]);
  leases.synced();
  assertEquals(leases.count, 2);
});

Deno.test("a renewal counts from when it was seen, whatever the clocks say", () => {
  const { clock, leases, news } = setUp();
  const year = 365 * 24 * 3600;
  leases.changed([added(lease("a", year)), added(lease("b", year))]);
  leases.synced();
  assertEquals([leases.count, news()], [1, 0]);
  clock.advance(15_000);
  leases.changed([updated(lease("a", year - 15))]);
  leases.changed([updated(lease("b", year - 15))]);
  assertEquals([leases.count, news()], [2, 1]);
  // Something else of it has changed: that is no renewal.
  clock.advance(29_000);
  leases.changed([updated(lease("b", year - 15))]);
  clock.advance(1_000);
  assertEquals(leases.count, 1);
});

Deno.test("a lease that is deleted counts no more", () => {
  const { leases, news } = setUp();
  leases.changed([added(lease("a", 0)), added(lease("b", 0))]);
  leases.synced();
  leases.changed([{ type: "removed", object: lease("b", 0) }]);
  assertEquals([leases.count, news()], [1, 1]);
  leases.changed([added(lease("b", 0))]);
  assertEquals([leases.count, news()], [2, 2]);
});

Deno.test("that there are fewer is told as well, also of leases that had expired", () => {
  const { clock, leases, told } = setUp();
  leases.changed(["a", "b", "c", "d"].map((name) => added(lease(name, 0))));
  leases.synced();
  leases.changed([{ type: "removed", object: lease("d", 0) }]);
  assertEquals(told, [4, 3]);
  clock.advance(20_000);
  for (const name of ["a", "b"]) leases.changed([updated(lease(name, -20))]);
  clock.advance(15_000);
  leases.changed([{ type: "removed", object: lease("c", 0) }]);
  assertEquals(told, [4, 3, 2]);
});
