/**
 * Whatever three sources say, in whatever order and however often they start
 * again: when all is quiet, ports and picks are those of a model.
 */

import { assert, assertEquals } from "@std/assert";
import type {
  Endpoint,
  Service,
  ServiceEndpoints,
} from "../../catalog/model/model.ts";
import type {
  BoundListener,
  ListenAddress,
} from "../../../net/listen/listeners.ts";
import { forAll, type Prng } from "../../../tests/support/memory/prng.ts";
import {
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { ScriptedSource } from "../../../tests/support/watch/scripted_source.ts";
import type { PortProxy } from "../listeners/proxied_port.ts";
import { portKey } from "../listeners/proxied_port.ts";

const STEPS = 60;
const NAMES = ["a", "b", "c", "d"];
const PORT_NAMES = ["p", "q", "r"];

/** What one source has said, all told. */
class SaidSource {
  readonly services = new Map<string, Service>();
  readonly endpoints = new Map<string, readonly Endpoint[]>();

  constructor(readonly source: ScriptedSource) {}

  /** Says something, and keeps it in mind. */
  step(prng: Prng): void {
    const { sink } = this.source;
    const name = NAMES[prng.below(NAMES.length)]!;
    const key = `default/${name}`;
    switch (prng.below(6)) {
      case 0:
      case 1: {
        const one = randomService(prng, name);
        this.services.set(key, one);
        return sink.add({ services: [one] });
      }
      case 2:
      case 3: {
        const list = randomEndpoints(prng, name);
        this.endpoints.set(key, list.endpoints);
        return sink.add({ endpoints: [list] });
      }
      case 4:
        if (prng.below(2) === 0) {
          this.services.delete(key);
          return sink.remove({ services: [key] });
        }
        this.endpoints.delete(key);
        return sink.remove({ endpoints: [key] });
      default:
        return this.#startAgain(prng);
    }
  }

  /** What a list says after the source was away, when something had changed. */
  #startAgain(prng: Prng): void {
    const lost = `default/${NAMES[prng.below(NAMES.length)]!}`;
    this.services.delete(lost);
    const { sink } = this.source;
    sink.failed("it went away");
    sink.set({
      services: [...this.services.values()],
      endpoints: [...this.endpoints].map(([service, endpoints]) => ({
        service,
        endpoints,
      })),
    });
    sink.synced();
  }
}

function randomService(prng: Prng, name: string): Service {
  const count = prng.below(3);
  const start = prng.below(PORT_NAMES.length);
  return service(name, {
    ports: Array.from({ length: count }, (_, index) => ({
      name: PORT_NAMES[(start + index) % PORT_NAMES.length]!,
      port: 80 + index + prng.below(2) * 10,
      protocol: prng.below(2) === 0 ? "tcp" : "udp",
    })),
  });
}

function randomEndpoints(prng: Prng, name: string): ServiceEndpoints {
  const ports = Array.from({ length: prng.below(4) }, (_, index) => {
    const entries = PORT_NAMES.filter(() => prng.below(3) > 0)
      .map((port) => [port, 1_000 + 10 * index + prng.below(3)] as const);
    return Object.fromEntries(entries);
  });
  return {
    ...endpoints(name, ports),
    endpoints: endpoints(name, ports).endpoints
      .filter(({ ports }) => ports.length > 0)
      .map((one) => ({
        ...one,
        state: prng.below(4) === 0 ? "serving" : "ready",
      })),
  };
}

/** Every port that should be there, and what may be picked for it. */
function model(
  sources: readonly SaidSource[],
): Map<string, { protocol: string; number: number; usable: string[] }> {
  const ports = new Map();
  for (const name of NAMES) {
    const key = `default/${name}`;
    const owner = sources.find(({ services }) => services.has(key));
    if (owner === undefined) continue;
    const list = owner.endpoints.get(key) ??
      sources.find(({ endpoints }) => endpoints.has(key))?.endpoints.get(key) ??
      [];
    for (const { name, port, protocol } of owner.services.get(key)!.ports) {
      ports.set(portKey(key, name), {
        protocol,
        number: port,
        usable: usableOf(list, name),
      });
    }
  }
  return ports;
}

function usableOf(list: readonly Endpoint[], portName: string): string[] {
  const inState = (state: Endpoint["state"]) =>
    list.filter((one) => one.state === state).flatMap(({ address, ports }) =>
      ports.filter(({ name }) => name === portName)
        .map(({ port }) => `${address}:${port}`)
    );
  const ready = inState("ready");
  return [...new Set(ready.length > 0 ? ready : inState("serving"))].sort();
}

/** Listeners without sockets; `open` has those that are open. */
function paperProxies() {
  const open = new Set<string>();
  const create = (protocol: string) => (): PortProxy => ({
    load: 0,
    open({ hostname, port }: ListenAddress): BoundListener {
      const address = `${protocol} ${hostname}:${port}`;
      assert(!open.has(address), `${address} is open already`);
      open.add(address);
      return { address, port, close: () => void open.delete(address) };
    },
    left: () => {},
    drain: () => Promise.resolve(),
  });
  return { open, portProxies: { tcp: create("tcp"), udp: create("udp") } };
}

Deno.test("ports and picks are what three sources say, whatever they said before", async () => {
  await forAll(40, async (prng) => {
    const { open, portProxies } = paperProxies();
    const others = ["second", "third"].map((name) =>
      new ScriptedSource(name, "synced")
    );
    await using rig = new ProxyRig({
      portProxies,
      sources: others,
      addresses: {
        kind: "virtual-ips",
        range: { first: 0x7f64_0000, count: 256 },
      },
    });
    const sources = [rig.source, ...others]
      .map((source) => new SaidSource(source));
    for (let step = 0; step < STEPS; step++) {
      sources[prng.below(sources.length)]!.step(prng);
      if (prng.below(5) === 0) assertIsModel(rig, open, sources);
    }
    assertIsModel(rig, open, sources);
  });
});

function assertIsModel(
  rig: ProxyRig,
  open: ReadonlySet<string>,
  sources: readonly SaidSource[],
): void {
  const expected = model(sources);
  const { served } = rig.proxy;
  assertEquals([...served.keys()].sort(), [...expected.keys()].sort());
  const addresses: string[] = [];
  for (const [key, { protocol, number, usable }] of expected) {
    const { port, listener, problem } = served.get(key)!;
    assertEquals(problem ?? listener.problem, undefined, key);
    assertEquals([port.protocol, listener.bound!.port], [protocol, number]);
    addresses.push(listener.address!);
    const picks = usable.map(() => port.balancer.pick("10.0.0.1")!.key);
    assertEquals(picks.sort(), usable, key);
    if (usable.length === 0) {
      assertEquals(port.balancer.pick("10.0.0.1"), undefined);
    }
  }
  assertEquals([...open].sort(), addresses.sort());
}
