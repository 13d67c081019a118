import { assertEquals } from "@std/assert";
import {
  DIRECT,
  type Endpoint,
  keyOf,
  type Service,
  type ServicePort,
} from "../../catalog/model/model.ts";
import { resourceNameOf } from "../../catalog/model/resource_names.ts";
import { endpoints, service } from "../../../tests/support/rigs/proxy_rig.ts";
import { Prng } from "../../../tests/support/memory/prng.ts";
import { ServiceAssembly } from "./service_assembly.ts";

const WEB = service("web");
const KEY = "default/web";
const NAME = "default/web:80";

const port = (name: string, number: number): ServicePort => ({
  name,
  port: number,
  protocol: "tcp",
});

/** An assembly that is told of one port after the other. */
class Rig {
  readonly assembly = new ServiceAssembly();

  cluster(of: Service, port: ServicePort): void {
    const assignment = resourceNameOf(keyOf(of), port);
    this.assembly.change("cluster", assignment, {
      ...{ kind: "cluster", service: of, port: port.name, assignment },
    });
  }

  listener(name: string): void {
    this.assembly.change("listener", name, { kind: "listener" });
  }

  assign(name: string, list: readonly Endpoint[]): void {
    this.assembly.change("endpoints", name, {
      kind: "endpoints",
      endpoints: list,
    });
  }

  gone(kind: "cluster" | "listener" | "endpoints", name: string): void {
    this.assembly.change(kind, name, undefined);
  }

  /** Everything of a service, as it is. */
  whole(of: Service, list: readonly Endpoint[]): void {
    for (const each of of.ports) {
      const name = resourceNameOf(keyOf(of), each);
      this.cluster(of, each);
      this.listener(name);
      this.assign(
        name,
        list.filter(({ ports }) => ports.some((p) => p.name === each.name)),
      );
    }
  }

  /** What is settled: `key`, or `key -` when it is gone. */
  take(): string[] {
    return [...this.assembly.take()].map(([key, whole]) =>
      whole === undefined ? `${key} -` : key
    );
  }

  get service(): Service | undefined {
    return this.assembly.whole.get(KEY)?.service;
  }

  get addresses(): readonly string[] {
    return (this.assembly.whole.get(KEY)?.endpoints ?? [])
      .map(({ ports }) => ports.map(({ port }) => port).join("+"));
  }
}

const behind = (...ports: Parameters<typeof endpoints>[1][]) =>
  endpoints("web", ports.flat()).endpoints;

Deno.test("a service appears with its last part, whichever that is", () => {
  const parts: readonly ((rig: Rig) => void)[] = [
    (rig) => rig.cluster(WEB, WEB.ports[0]!),
    (rig) => rig.listener(NAME),
    (rig) => rig.assign(NAME, behind([8080])),
  ];
  for (const order of [[0, 1, 2], [2, 1, 0], [1, 2, 0]]) {
    const rig = new Rig();
    for (const [step, part] of order.entries()) {
      parts[part]!(rig);
      assertEquals(rig.take(), step === 2 ? [KEY] : []);
    }
    assertEquals([rig.service, rig.addresses], [WEB, ["8080"]]);
  }
});

Deno.test("what a service waits for is named", () => {
  const rig = new Rig();
  const two = { ...WEB, ports: [port("a", 80), port("b", 81)] };
  rig.cluster(two, two.ports[0]!);
  rig.take();
  assertEquals(rig.assembly.waitsFor(KEY), "the listener default/web:80");
  rig.listener(NAME);
  assertEquals(rig.assembly.waitsFor(KEY), "the endpoints of default/web:80");
  rig.assign(NAME, []);
  assertEquals(rig.assembly.waitsFor(KEY), "the cluster default/web:81");
  rig.take();
  assertEquals([...rig.assembly.waiting], [KEY]);
  rig.whole(two, []);
  assertEquals(rig.take(), [KEY]);
  assertEquals(rig.assembly.waitsFor(KEY), undefined);
  assertEquals(rig.assembly.waiting.size, 0);
  assertEquals(rig.assembly.waitsFor("default/none"), undefined);
});

Deno.test("endpoints change at once, and nothing is said where nothing does", () => {
  const rig = new Rig();
  rig.whole(WEB, behind([1]));
  rig.take();
  rig.assign(NAME, behind([1, 2]));
  assertEquals([rig.take(), rig.addresses], [[KEY], ["1", "2"]]);
  rig.assign(NAME, behind([1, 2]));
  rig.cluster({ ...WEB }, WEB.ports[0]!);
  rig.listener(NAME);
  assertEquals(rig.take(), []);
});

Deno.test("a change of several ports is taken when all have it", () => {
  const rig = new Rig();
  const old = { ...WEB, ports: [port("a", 80), port("b", 81)] };
  rig.whole(old, []);
  rig.take();
  const next = { ...old, policy: { drainMs: 5 } };
  rig.cluster(next, next.ports[0]!);
  assertEquals([rig.take(), rig.service], [[], old]);
  // Where its endpoints are is no part of the change.
  rig.assign("default/web:81", behind([{ b: 9 }]));
  assertEquals([rig.take(), rig.service, rig.addresses], [[KEY], old, ["9"]]);
  rig.cluster(next, next.ports[1]!);
  assertEquals([rig.take(), rig.service], [[KEY], next]);
});

Deno.test("a service that moves to another port does not fall back while the old one lingers", () => {
  const rig = new Rig();
  rig.whole(WEB, behind([1]));
  rig.take();
  const moved = { ...WEB, ports: [port("", 81)] };
  rig.cluster(moved, moved.ports[0]!);
  assertEquals([rig.take(), rig.service], [[], WEB]);
  rig.assign("default/web:81", behind([1]));
  rig.listener("default/web:81");
  assertEquals([rig.take(), rig.service], [[KEY], moved]);
  rig.assign(NAME, behind([7]));
  assertEquals([rig.take(), rig.service], [[], moved]);
  rig.gone("listener", NAME);
  rig.gone("cluster", NAME);
  rig.gone("endpoints", NAME);
  assertEquals([rig.take(), rig.service], [[], moved]);
});

Deno.test("a service goes with its listeners, though its clusters linger", () => {
  const rig = new Rig();
  rig.whole(WEB, behind([1]));
  rig.take();
  rig.gone("listener", NAME);
  assertEquals(rig.take(), [`${KEY} -`]);
  rig.gone("cluster", NAME);
  assertEquals(rig.take(), []);
  rig.whole(WEB, behind([1]));
  rig.take();
  rig.gone("cluster", NAME);
  assertEquals(rig.take(), [`${KEY} -`]);
});

Deno.test("an assignment that is gone takes no service with it", () => {
  const rig = new Rig();
  rig.whole(WEB, behind([1]));
  rig.take();
  rig.gone("endpoints", NAME);
  assertEquals([rig.take(), rig.addresses], [[], ["1"]]);
  rig.assign(NAME, []);
  assertEquals([rig.take(), rig.addresses], [[KEY], []]);
});

Deno.test("endpoints of several ports come back in their order, each once", () => {
  const random = new Prng(7);
  const ports = [port("a", 80), port("b", 81), port("c", 82)];
  const several = { ...WEB, ports };
  for (let round = 0; round < 200; round++) {
    const count = random.below(8);
    const list: Endpoint[] = Array.from({ length: count }, (_, i) => {
      const some = ports.filter(() => random.below(2) === 0);
      const has = some.length === 0 ? [ports[i % 3]!] : some;
      return {
        address: `10.0.0.${i + 1}`,
        ports: has.map(({ name, port }) => ({ name, port: port + i })),
        state: "ready",
        weight: 1,
        via: DIRECT,
      };
    });
    const rig = new Rig();
    rig.whole(several, list);
    rig.take();
    const found = rig.assembly.whole.get(KEY)!.endpoints;
    const of = (all: readonly Endpoint[], name: string) =>
      all.filter(({ ports }) => ports.some((each) => each.name === name));
    assertEquals(found.length, list.length);
    for (const { name } of ports) assertEquals(of(found, name), of(list, name));
  }
});
