import { assert, assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  endpointOf,
  serviceOf,
} from "../../tests/support/watch/scripted_source.ts";
import { describeDiff, diffSnapshots, isEmptyDiff } from "./diff.ts";
import {
  type Endpoint,
  endpointKeyOf,
  keyOf,
  type Service,
} from "./model/model.ts";
import { EMPTY_SNAPSHOT, type Snapshot } from "./snapshot.ts";

function snapshot(
  services: readonly Service[],
  endpoints: Record<string, readonly Endpoint[]> = {},
): Snapshot {
  return {
    version: 1,
    services: new Map(services.map((service) => [keyOf(service), service])),
    endpoints: new Map(Object.entries(endpoints)),
  };
}

const said = (before: Snapshot, after: Snapshot) =>
  describeDiff(diffSnapshots(before, after));

Deno.test("services that come, go and change are reported by name", () => {
  const [a, b, c] = [serviceOf("a"), serviceOf("b"), serviceOf("x/c")] as const;
  const changed = serviceOf("b", 81);
  assertEquals(
    said(snapshot([a, b]), snapshot([changed, c])),
    "+x/c; -default/a; default/b: ports 81/tcp, was 80/tcp",
  );
  const sticky = serviceOf("a", 80, {
    affinity: { kind: "client-ip", ttlMs: 1 },
  });
  assertEquals(
    said(snapshot([a]), snapshot([sticky])),
    "default/a: other settings",
  );
});

Deno.test("endpoints are reported by address, port and state", () => {
  const [one, two] = [
    endpointOf("10.0.0.1:80"),
    endpointOf("fd00::2:80"),
  ] as const;
  const serving = endpointOf("10.0.0.1:80", { state: "serving" });
  const heavy = endpointOf("10.0.0.1:80", { weight: 9 });
  const of = (...endpoints: readonly Endpoint[]) =>
    snapshot([], { "default/a": endpoints });
  assertEquals(
    said(of(), of(one, two)),
    "default/a: +10.0.0.1:80 +[fd00::2]:80",
  );
  assertEquals(said(of(one, two), of(two)), "default/a: -10.0.0.1:80");
  assertEquals(
    said(of(one), of(serving)),
    "default/a: 10.0.0.1:80 serving, was ready",
  );
  assertEquals(said(of(one), of(heavy)), "default/a: ~10.0.0.1:80");
  assertEquals(said(of(one, two), of(two, one)), "default/a: other order");
});

Deno.test("a long difference ends with a count", () => {
  const many = Array.from({ length: 1_000 }, (_, i) => serviceOf(`s${i}`));
  const line = said(EMPTY_SNAPSHOT, snapshot(many));
  assert(line.endsWith("+default/s4; and 995 more"));
});

Deno.test("no endpoints and an empty list of them are no difference", () => {
  const diff = diffSnapshots(
    EMPTY_SNAPSHOT,
    snapshot([], { "default/a": [] }),
  );
  assert(isEmptyDiff(diff));
});

Deno.test("lists in which endpoints are there twice differ as their last words do", async () => {
  const pool = ["10.0.0.1:80", "10.0.0.1:81", "10.0.0.2:80", "10.0.0.2:80"]
    .flatMap((address) => [
      endpointOf(address),
      endpointOf(address, { state: "serving" }),
    ]);
  const byKey = (list: readonly Endpoint[]) =>
    new Map(list.map((one) => [endpointKeyOf(one), one]));
  await forAll(2_000, (prng) => {
    const [before, after] = [0, 1].map(() =>
      Array.from({ length: prng.below(6) }, () => prng.pick(pool))
    ) as [Endpoint[], Endpoint[]];
    const [old, now] = [byKey(before), byKey(after)];
    const [diff] = diffSnapshots(
      snapshot([], { a: before }),
      snapshot([], { a: after }),
    ).endpoints;
    // Both are in both: they only stand otherwise.
    const isOrder = (was: Endpoint, one: Endpoint) =>
      before.includes(one) && after.includes(was);
    const expected = {
      added: [...now].filter(([key]) => !old.has(key)).map(([, one]) => one),
      removed: [...old].filter(([key]) => !now.has(key)).map(([, one]) => one),
      changed: [...now].flatMap(([key, one]) => {
        const was = old.get(key);
        return was === undefined || was === one || isOrder(was, one)
          ? []
          : [{ before: was, after: one }];
      }),
    };
    const seen = diff && {
      added: diff.added,
      removed: diff.removed,
      changed: diff.changed.filter(({ before, after }) =>
        !isOrder(before, after)
      ),
    };
    const isNothing = before.length + after.length === 0;
    assertEquals(seen, isNothing ? undefined : expected);
  });
});
