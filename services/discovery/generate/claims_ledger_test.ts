import { assert, assertEquals } from "@std/assert";
import { Prng } from "../../../tests/support/memory/prng.ts";
import {
  type Resource,
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import { type ByKind, ClaimsLedger } from "./claims_ledger.ts";
import type { Claim, ServiceResources, Unserved } from "./service_resources.ts";

/** Settles whatever is undecided. */
function settle(ledger: ClaimsLedger): number {
  let steps = 0;
  while (ledger.hasUndecided) for (const _ of ledger.settling()) steps++;
  return steps;
}

function resourceOf(kind: ResourceKind, name: string): Resource {
  return { kind, name, version: name, any: new Uint8Array(0) };
}

function claimOf(service: string, name: string, order = 0): Claim {
  const resource = resourceOf("listener", name);
  return { service, resource, order, rank: 0, whenLost: `${name} is of` };
}

Deno.test("what one service gives up another one gets, and status shows it", () => {
  const ledger = new ClaimsLedger();
  const alone = claimOf("b", "x");
  ledger.put("b", { claims: [alone], unserved: [] });
  settle(ledger);
  assert(ledger.take().listener.get("x") === alone.resource);
  assertEquals(ledger.takeUnserved(), []);
  const better = claimOf("a", "x");
  ledger.put("a", { claims: [better], unserved: [] });
  settle(ledger);
  assert(ledger.take().listener.get("x") === better.resource);
  assertEquals(ledger.takeUnserved(), [
    { service: "b", reason: "x is of a" },
  ]);
  ledger.put("a", undefined);
  settle(ledger);
  assert(ledger.take().listener.get("x") === alone.resource);
  assertEquals(ledger.takeUnserved(), []);
});

Deno.test("whatever was claimed in whatever order, it is settled as if all came at once", () => {
  const prng = Prng.fromEnvironment();
  for (let round = 0; round < 25; round++) {
    const ledger = new ClaimsLedger();
    const services = new Map<string, ServiceResources>();
    let before = ledger.take();
    for (let step = 0; step < 40; step++) {
      for (let count = prng.below(4); count >= 0; count--) {
        const service = `s${prng.below(6)}`;
        const resources = prng.below(4) === 0
          ? undefined
          : randomResources(service, services.get(service), prng);
        ledger.put(service, resources);
        if (resources === undefined) services.delete(service);
        else services.set(service, resources);
        // Changes may come at any time.
        if (prng.below(3) === 0) ledger.settling().next();
      }
      settle(ledger);
      const at = `SEED=${prng.seed}, round ${round}, step ${step}`;
      const expected = settleAtOnce(services);
      const after = ledger.take();
      assertEquals(textsOf(after), textsOf(expected.resources), at);
      assertEquals(ledger.takeUnserved(), expected.unserved, at);
      for (const kind of RESOURCE_KINDS) {
        const isSame = textsOf(before)[kind]!.join() ===
          textsOf(after)[kind]!.join();
        if (before[kind] === after[kind]) assert(isSame, at);
      }
      before = after;
    }
  }
});

Deno.test("a change costs what it changes, however many services there are", () => {
  const ledger = new ClaimsLedger();
  const resourcesOf = (service: string): ServiceResources => ({
    claims: [0, 1].map((order) =>
      claimOf(service, `${service}:${order}`, order)
    ),
    unserved: [],
  });
  for (let index = 0; index < 5_000; index++) {
    ledger.put(`s${index}`, resourcesOf(`s${index}`));
  }
  assert(settle(ledger) >= 100);
  ledger.take();
  ledger.put("s17", resourcesOf("s17"));
  assertEquals(settle(ledger), 0);
});

/** Few names and places, so that they are fought for. */
function randomResources(
  service: string,
  before: ServiceResources | undefined,
  prng: Prng,
): ServiceResources {
  const claims = Array.from({ length: prng.below(4) }, (_, order): Claim => {
    const old = before?.claims[order];
    if (old !== undefined && prng.below(2) === 0) return old;
    const kind = RESOURCE_KINDS[prng.below(4)]!;
    const resource = resourceOf(kind, `n${prng.below(5)}`);
    const rank = prng.below(2);
    return {
      ...{ service, resource, order, rank },
      ...prng.below(2) === 0 ? {} : { address: `a${prng.below(3)}` },
      ...prng.below(2) === 0 ? {} : { whenLost: `${kind} of` },
      ...prng.below(3) === 0 ? { whenHeld: `${kind} held` } : {},
    };
  });
  const unserved = prng.below(3) === 0 ? [{ service, reason: "because" }] : [];
  return { claims, unserved };
}

/** The rule in the fewest words, for all services together. */
function settleAtOnce(
  services: ReadonlyMap<string, ServiceResources>,
): { resources: ByKind; unserved: readonly Unserved[] } {
  const inOrder = [...services.keys()].sort()
    .map((service) => services.get(service)!);
  const names = new Map<string, Claim>();
  const addresses = new Map<string, Claim>();
  const take = (held: Map<string, Claim>, thing: string, claim: Claim) => {
    const holder = held.get(thing);
    if (holder === undefined || claim.rank < holder.rank) {
      held.set(thing, claim);
    }
  };
  const nameOf = ({ resource: { kind, name } }: Claim) => `${kind} ${name}`;
  for (const { claims } of inOrder) {
    for (const claim of claims) {
      take(names, nameOf(claim), claim);
      if (claim.address !== undefined) take(addresses, claim.address, claim);
    }
  }
  const resources = Object.fromEntries(
    RESOURCE_KINDS.map((kind) => [kind, new Map<string, Resource>()]),
  ) as Record<ResourceKind, Map<string, Resource>>;
  const unserved: Unserved[] = [];
  for (const one of inOrder) {
    unserved.push(...one.unserved);
    for (const claim of one.claims) {
      const { resource, address, service, whenLost, whenHeld } = claim;
      let holder = names.get(nameOf(claim))!;
      if (holder === claim && address !== undefined) {
        holder = addresses.get(address)!;
      }
      if (holder === claim) {
        resources[resource.kind].set(resource.name, resource);
        if (whenHeld !== undefined) {
          unserved.push({ service, reason: whenHeld });
        }
      } else if (whenLost !== undefined) {
        unserved.push({ service, reason: `${whenLost} ${holder.service}` });
      }
    }
  }
  return { resources, unserved };
}

function textsOf(resources: ByKind): Record<string, string[]> {
  return Object.fromEntries(
    RESOURCE_KINDS.map((kind) => [kind, [...resources[kind].keys()].sort()]),
  );
}
