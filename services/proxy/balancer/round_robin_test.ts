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
      const targets = list.filter((address) => address !== "");
      this.#balancer(service).update(
        targets.map((address) => target(address)),
      );
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

  /** One line of a script. */
  run(line: string): void {
    const [what, wanted] = line.split(" -> ");
    const [verb = "", ...words] = what!.trim().split(" ");
    if (verb === "update") {
      const lists = words.map((word) => word.split("="));
      return this.update(
        Object.fromEntries(
          lists.map(([service, list = ""]) => [service, list.split(",")]),
        ),
      );
    }
    if (verb === "sticky") return this.sticky(words[0]!);
    const [client, failed] = words;
    const expected = wanted!.split(" ");
    const seen = expected.map(() =>
      failed === undefined
        ? this.next(verb, client)
        : this.nextAfter(verb, client!, failed)
    );
    assertEquals(seen.map((key) => key ?? "none"), expected, line);
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

/**
 * By upstream's name, a step a line: `update SERVICE=ENDPOINT,…`, all services;
 * `sticky SERVICE`; `SERVICE [CLIENT [FAILED]] -> ENDPOINT …`, one call for each.
 */
const SCRIPTS: Readonly<Record<string, string>> = {
  TestLoadBalanceFailsWithNoEndpoints: `
    update
    foo -> none`,
  TestLoadBalanceWorksWithSingleEndpoint: `
    foo -> none
    update foo=e1:40
    foo -> e1:40 e1:40 e1:40 e1:40`,
  TestLoadBalanceWorksWithMultipleEndpoints: `
    foo -> none
    update foo=e:1,e:2,e:3
    foo -> e:1 e:2 e:3 e:1`,
  TestLoadBalanceWorksWithMultipleEndpointsMultiplePorts: `
    update foo:p=e1:1,e2:1,e3:1 foo:q=e1:2,e2:2,e3:2
    foo:p -> e1:1 e2:1
    foo:q -> e1:2 e2:2 e3:2
    foo:p -> e3:1 e1:1
    update foo:p=e4:1 foo:q=e4:2
    foo:p -> e4:1 e4:1
    foo:q -> e4:2`,
  TestLoadBalanceWorksWithMultipleEndpointsAndUpdates: `
    update foo=e:1,e:2,e:3
    foo -> e:1 e:2 e:3 e:1 e:2
    update foo=e:8,e:9
    foo -> e:8 e:9 e:8 e:9
    update foo=
    foo -> none`,
  TestLoadBalanceWorksWithServiceRemoval: `
    update foo=e:1,e:2,e:3 bar=e:4,e:5
    foo -> e:1 e:2 e:3 e:1 e:2
    bar -> e:4 e:5 e:4 e:5 e:4
    update bar=e:4,e:5
    foo -> none
    bar -> e:5 e:4 e:5 e:4`,
  TestStickyLoadBalanceWorksWithNewServiceCalledFirst: `
    sticky foo
    update foo=e:1,e:2,e:3
    foo c1 -> e:1 e:1
    foo c2 -> e:2 e:2
    foo c3 -> e:3 e:3`,
  TestStickyLoadBalanceWorksWithNewServiceCalledSecond: `
    update foo=e:1,e:2,e:3
    sticky foo
    foo c1 -> e:1 e:1
    foo c2 -> e:2 e:2
    foo c3 -> e:3 e:3`,
  TestStickyLoadBalanaceWorksWithMultipleEndpointsRemoveOne: `
    sticky foo
    update foo=e:1,e:2,e:3
    foo c1 -> e:1
    foo c2 -> e:2
    foo c3 -> e:3
    update foo=e:1,e:2
    foo c1 -> e:1
    foo c2 -> e:2
    foo c3 -> e:1
    update foo=e:1,e:2,e:4
    foo c1 -> e:1
    foo c2 -> e:2
    foo c3 -> e:1
    foo c4 -> e:1
    foo c5 -> e:2
    foo c6 -> e:4`,
  TestStickyLoadBalanceWorksWithMultipleEndpointsAndUpdates: `
    sticky foo
    update foo=e:1,e:2,e:3
    foo c1 -> e:1 e:1
    foo c2 -> e:2 e:2
    foo c3 -> e:3 e:3
    update foo=e:4,e:5
    foo c1 -> e:4 e:4
    foo c2 -> e:5 e:5
    update foo=
    foo -> none`,
  TestStickyLoadBalanceWorksWithServiceRemoval: `
    sticky foo
    sticky bar
    update foo=e:1,e:2,e:3 bar=e:5,e:6
    foo c1 -> e:1 e:1
    foo c2 -> e:2 e:2
    foo c3 -> e:3 e:3
    bar c1 -> e:5 e:5
    bar c2 -> e:6 e:6
    update bar=e:5,e:6
    foo -> none
    bar c2 -> e:6
    bar c1 -> e:5`,
  // The turn after the first three is e:1's, which failed; affinity is written anew.
  TestStickyLoadBalanceWorksWithEndpointFails: `
    sticky foo
    update foo=e:1,e:2,e:3
    foo c1 -> e:1
    foo c2 -> e:2
    foo c3 -> e:3
    foo c1 e:1 -> e:2
    foo c1 -> e:2
    foo c2 -> e:2
    foo c3 -> e:3`,
  "a list in another order is the same list": `
    update foo=e:1,e:2,e:3
    foo -> e:1
    update foo=e:3,e:1,e:2
    foo -> e:2 e:3 e:1`,
};

for (const [name, script] of Object.entries(SCRIPTS)) {
  Deno.test(name, () => {
    const balancer = new LoadBalancer();
    for (const line of script.trim().split("\n")) balancer.run(line);
  });
}
