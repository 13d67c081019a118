/**
 * kube-proxy's own tests of its round robin, by the names that they have there
 * (`pkg/proxy/userspace/roundrobin_test.go`).
 */

import { assertEquals } from "@std/assert";
import { DEFAULT_AFFINITY_TTL_MS } from "../../catalog/model/model.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { target } from "../../../tests/support/peers/targets.ts";
import type { Backend } from "./backend.ts";
import { Balancer } from "./balancer.ts";

/** As kube-proxy's `LoadBalancerRR`: the balancers of all services. */
class LoadBalancer {
  readonly #balancers = new Map<string, Balancer>();
  readonly timers = new FakeTimers();

  /** `NewService`, which upstream may call before or after `update`. */
  sticky(service: string, ttlMs = DEFAULT_AFFINITY_TTL_MS): void {
    this.#balancer(service).configure({
      balance: "round-robin",
      affinity: { kind: "client-ip", ttlMs },
    });
  }

  /** `OnUpdate`: the endpoints of all services. */
  update(endpoints: Readonly<Record<string, readonly string[]>>): void {
    for (const service of this.#balancers.keys()) {
      if (!(service in endpoints)) this.#balancers.delete(service);
    }
    for (const [service, list] of Object.entries(endpoints)) {
      this.#balancer(service).update(list.map((address) => target(address)));
    }
  }

  /** `NextEndpoint`; `undefined` is its error. */
  next(service: string, client = "127.0.0.1"): string | undefined {
    return this.#balancers.get(service)?.pick(client)?.key;
  }

  /** `NextEndpoint` with `sessionAffinityReset`, after `failed` failed. */
  nextAfter(service: string, client: string, failed: string) {
    const balancer = this.#balancer(service);
    const tried = new Set<Backend>();
    for (const one of balancer.backends) if (one.key === failed) tried.add(one);
    return balancer.pick(client, tried)?.key;
  }

  expect(service: string, endpoints: readonly (string | undefined)[]): void {
    assertEquals(endpoints.map(() => this.next(service)), endpoints);
  }

  expectClients(
    service: string,
    where: Readonly<Record<string, string>>,
  ): void {
    const seen = Object.keys(where)
      .map((client) => [client, this.next(service, client)]);
    assertEquals(Object.fromEntries(seen), where);
  }

  #balancer(service: string): Balancer {
    let balancer = this.#balancers.get(service);
    if (balancer === undefined) {
      balancer = new Balancer({ clock: this.timers, random: () => 0 });
      this.#balancers.set(service, balancer);
    }
    return balancer;
  }
}

const [CLIENT_1, CLIENT_2, CLIENT_3, CLIENT_4, CLIENT_5, CLIENT_6] = [
  "127.0.0.1",
  "127.0.0.2",
  "127.0.0.3",
  "127.0.0.4",
  "127.0.0.5",
  "127.0.0.6",
] as const;

Deno.test("TestLoadBalanceFailsWithNoEndpoints", () => {
  const balancer = new LoadBalancer();
  balancer.update({});
  balancer.expect("foo", [undefined]);
});

Deno.test("TestLoadBalanceWorksWithSingleEndpoint", () => {
  const balancer = new LoadBalancer();
  balancer.expect("foo", [undefined]);
  balancer.update({ foo: ["endpoint1:40"] });
  balancer.expect("foo", Array(4).fill("endpoint1:40"));
});

Deno.test("TestLoadBalanceWorksWithMultipleEndpoints", () => {
  const balancer = new LoadBalancer();
  balancer.expect("foo", [undefined]);
  balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:3"] });
  balancer.expect("foo", [
    "endpoint:1",
    "endpoint:2",
    "endpoint:3",
    "endpoint:1",
  ]);
});

Deno.test("TestLoadBalanceWorksWithMultipleEndpointsMultiplePorts", () => {
  const balancer = new LoadBalancer();
  balancer.update({
    "foo:p": ["endpoint1:1", "endpoint2:1", "endpoint3:1"],
    "foo:q": ["endpoint1:2", "endpoint2:2", "endpoint3:2"],
  });
  balancer.expect("foo:p", ["endpoint1:1", "endpoint2:1"]);
  balancer.expect("foo:q", ["endpoint1:2", "endpoint2:2", "endpoint3:2"]);
  balancer.expect("foo:p", ["endpoint3:1", "endpoint1:1"]);
  balancer.update({ "foo:p": ["endpoint4:1"], "foo:q": ["endpoint4:2"] });
  balancer.expect("foo:p", ["endpoint4:1", "endpoint4:1"]);
  balancer.expect("foo:q", ["endpoint4:2"]);
});

Deno.test("TestLoadBalanceWorksWithMultipleEndpointsAndUpdates", () => {
  const balancer = new LoadBalancer();
  balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:3"] });
  balancer.expect("foo", [
    "endpoint:1",
    "endpoint:2",
    "endpoint:3",
    "endpoint:1",
    "endpoint:2",
  ]);
  balancer.update({ foo: ["endpoint:8", "endpoint:9"] });
  balancer.expect("foo", [
    "endpoint:8",
    "endpoint:9",
    "endpoint:8",
    "endpoint:9",
  ]);
  balancer.update({ foo: [] });
  balancer.expect("foo", [undefined]);
});

Deno.test("TestLoadBalanceWorksWithServiceRemoval", () => {
  const balancer = new LoadBalancer();
  const bar = ["endpoint:4", "endpoint:5"];
  balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:3"], bar });
  balancer.expect("foo", [
    "endpoint:1",
    "endpoint:2",
    "endpoint:3",
    "endpoint:1",
    "endpoint:2",
  ]);
  balancer.expect("bar", [
    "endpoint:4",
    "endpoint:5",
    "endpoint:4",
    "endpoint:5",
    "endpoint:4",
  ]);
  balancer.update({ bar });
  balancer.expect("foo", [undefined]);
  balancer.expect("bar", [
    "endpoint:5",
    "endpoint:4",
    "endpoint:5",
    "endpoint:4",
  ]);
});

for (const order of ["First", "Second"]) {
  Deno.test(`TestStickyLoadBalanceWorksWithNewServiceCalled${order}`, () => {
    const balancer = new LoadBalancer();
    if (order === "First") balancer.sticky("foo");
    balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:3"] });
    if (order === "Second") balancer.sticky("foo");
    for (let visit = 0; visit < 2; visit++) {
      balancer.expectClients("foo", {
        [CLIENT_1]: "endpoint:1",
        [CLIENT_2]: "endpoint:2",
        [CLIENT_3]: "endpoint:3",
      });
    }
  });
}

Deno.test("TestStickyLoadBalanaceWorksWithMultipleEndpointsRemoveOne", () => {
  const balancer = new LoadBalancer();
  balancer.sticky("foo");
  balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:3"] });
  balancer.expectClients("foo", {
    [CLIENT_1]: "endpoint:1",
    [CLIENT_2]: "endpoint:2",
    [CLIENT_3]: "endpoint:3",
  });
  balancer.update({ foo: ["endpoint:1", "endpoint:2"] });
  const settled = {
    [CLIENT_1]: "endpoint:1",
    [CLIENT_2]: "endpoint:2",
    [CLIENT_3]: "endpoint:1",
  };
  balancer.expectClients("foo", settled);
  balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:4"] });
  balancer.expectClients("foo", {
    ...settled,
    [CLIENT_4]: "endpoint:1",
    [CLIENT_5]: "endpoint:2",
    [CLIENT_6]: "endpoint:4",
  });
});

Deno.test("TestStickyLoadBalanceWorksWithMultipleEndpointsAndUpdates", () => {
  const balancer = new LoadBalancer();
  balancer.sticky("foo");
  balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:3"] });
  for (let visit = 0; visit < 2; visit++) {
    balancer.expectClients("foo", {
      [CLIENT_1]: "endpoint:1",
      [CLIENT_2]: "endpoint:2",
      [CLIENT_3]: "endpoint:3",
    });
  }
  balancer.update({ foo: ["endpoint:4", "endpoint:5"] });
  for (let visit = 0; visit < 2; visit++) {
    balancer.expectClients("foo", {
      [CLIENT_1]: "endpoint:4",
      [CLIENT_2]: "endpoint:5",
    });
  }
  balancer.update({ foo: [] });
  balancer.expect("foo", [undefined]);
});

Deno.test("TestStickyLoadBalanceWorksWithServiceRemoval", () => {
  const balancer = new LoadBalancer();
  const bar = ["endpoint:5", "endpoint:6"];
  balancer.sticky("foo");
  balancer.sticky("bar");
  balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:3"], bar });
  for (let visit = 0; visit < 2; visit++) {
    balancer.expectClients("foo", {
      [CLIENT_1]: "endpoint:1",
      [CLIENT_2]: "endpoint:2",
      [CLIENT_3]: "endpoint:3",
    });
    balancer.expectClients("bar", {
      [CLIENT_1]: "endpoint:5",
      [CLIENT_2]: "endpoint:6",
    });
  }
  balancer.update({ bar });
  balancer.expect("foo", [undefined]);
  balancer.expectClients("bar", {
    [CLIENT_2]: "endpoint:6",
    [CLIENT_1]: "endpoint:5",
  });
});

Deno.test("TestStickyLoadBalanceWorksWithEndpointFails", () => {
  const balancer = new LoadBalancer();
  balancer.sticky("foo");
  balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:3"] });
  balancer.expectClients("foo", {
    [CLIENT_1]: "endpoint:1",
    [CLIENT_2]: "endpoint:2",
    [CLIENT_3]: "endpoint:3",
  });
  assertEquals(
    balancer.nextAfter("foo", CLIENT_1, "endpoint:1"),
    "endpoint:2",
    "the turn after the first three is endpoint:1's, which failed",
  );
  assertEquals(
    balancer.next("foo", CLIENT_1),
    "endpoint:2",
    "the affinity was written anew",
  );
  balancer.expectClients("foo", {
    [CLIENT_2]: "endpoint:2",
    [CLIENT_3]: "endpoint:3",
  });
});

Deno.test("a list in another order is the same list", () => {
  const balancer = new LoadBalancer();
  balancer.update({ foo: ["endpoint:1", "endpoint:2", "endpoint:3"] });
  balancer.expect("foo", ["endpoint:1"]);
  balancer.update({ foo: ["endpoint:3", "endpoint:1", "endpoint:2"] });
  balancer.expect("foo", ["endpoint:2", "endpoint:3", "endpoint:1"]);
});
