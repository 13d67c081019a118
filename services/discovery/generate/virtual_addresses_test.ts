import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { endpointOf } from "../../../tests/support/watch/scripted_source.ts";
import type { Endpoint, Via } from "../../catalog/model/model.ts";
import type { Snapshot } from "../../catalog/snapshot.ts";
import { RECENTLY_REMOVED_MS } from "../../catalog/recently_removed.ts";
import {
  isVirtualAddress,
  VirtualAddresses,
  virtualAddressOf,
  virtualAddressOfEndpoint,
} from "./virtual_addresses.ts";

const EDGE_1: Via = { kind: "agent", agent: { key: "host", value: "edge-1" } };
const EDGE_2: Via = { kind: "agent", agent: { key: "host", value: "edge-2" } };
const ANY: Via = { kind: "agent" };

function snapshot(endpoints: Record<string, readonly Endpoint[]>): Snapshot {
  return {
    version: 1,
    services: new Map(),
    endpoints: new Map(Object.entries(endpoints)),
  };
}

Deno.test("an address behind an agent is the same on every server, for ever", () => {
  // Clients keep these: to change one is to break them.
  const cases = [
    [{ address: "127.0.0.1" }, "fd74:756e:6e65:6c00:ff69:4d63:f438:d291"],
    [
      { address: "127.0.0.1", agent: { key: "host", value: "edge-1" } },
      "fd74:756e:6e65:6c00:d408:4cc0:ccb7:2657",
    ],
  ] as const;
  for (const [target, address] of cases) {
    assertEquals(virtualAddressOf(target), address);
    assert(isVirtualAddress(address));
  }
  assert(!isVirtualAddress("fd74:756e:6e65:6c01::1"));
  assert(!isVirtualAddress("10.0.0.1"));
  assert(!isVirtualAddress("web.internal"));
});

Deno.test("one address behind two agents is two addresses, and each leads home", () => {
  const endpoints = [EDGE_1, EDGE_2, ANY].map((via) =>
    endpointOf("127.0.0.1:8080", { via })
  );
  const known = new VirtualAddresses(new FakeTimers());
  known.update(snapshot({ "default/a": endpoints }));
  const virtual = endpoints.map((one) => virtualAddressOfEndpoint(one)!);
  assertEquals(new Set(virtual).size, 3);
  const resolved = virtual.map((one) => known.resolve(one));
  assertEquals(resolved, [
    { address: "127.0.0.1", agent: { key: "host", value: "edge-1" } },
    { address: "127.0.0.1", agent: { key: "host", value: "edge-2" } },
    { address: "127.0.0.1" },
  ]);
});

Deno.test("however a virtual address is written, it is that one", () => {
  const endpoint = endpointOf("web.internal:80", { via: EDGE_1 });
  const known = new VirtualAddresses(new FakeTimers());
  known.update(snapshot({ "default/a": [endpoint] }));
  const virtual = virtualAddressOfEndpoint(endpoint)!;
  assertEquals(known.resolve(virtual.toUpperCase())?.address, "web.internal");
  assertEquals(known.resolve("web.internal"), undefined);
});

Deno.test("an address is known for as long as an endpoint has it, and a while longer", () => {
  const timers = new FakeTimers();
  const one = endpointOf("127.0.0.1:80", { via: EDGE_1 });
  const other = endpointOf("127.0.0.1:81", { via: EDGE_1 });
  const direct = endpointOf("127.0.0.1:80");
  const virtual = virtualAddressOfEndpoint(one)!;
  assertEquals(virtualAddressOfEndpoint(other), virtual);
  assertEquals(virtualAddressOfEndpoint(direct), undefined);
  assertNotEquals(virtual, "127.0.0.1");
  const known = new VirtualAddresses(timers);
  known.update(snapshot({ "default/a": [one, direct], "default/b": [other] }));
  known.update(snapshot({ "default/a": [direct], "default/b": [other] }));
  assert(known.resolve(virtual) !== undefined);
  known.update(snapshot({ "default/a": [direct] }));
  assertEquals(known.resolve(virtual)?.address, "127.0.0.1");
  timers.advance(2 * RECENTLY_REMOVED_MS);
  assertEquals(known.resolve(virtual), undefined);
  known.update(snapshot({ "default/a": [one, one] }));
  known.update(snapshot({ "default/a": [one] }));
  assert(known.resolve(virtual) !== undefined);
});
