/**
 * kube-proxy 0.4's tests of its configuration pipeline (`config_test` and
 * `util/config`), by their names, on ours. Those of `api_test` are in
 * `sources/kubernetes/kubernetes_test.ts`.
 */

import { assertEquals, assertThrows } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import {
  endpointsOf,
  ScriptedSource,
  serviceOf,
} from "../../tests/support/watch/scripted_source.ts";
import { Catalog } from "./catalog.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Service, ServiceEndpoints } from "./model/model.ts";

/** A started catalog over scripted sources, and what a handler was handed. */
class Config {
  readonly catalog: Catalog;
  readonly sources: readonly ScriptedSource[];

  constructor(...names: readonly string[]) {
    this.sources = names.map((name) => new ScriptedSource(name));
    this.catalog = new Catalog({
      sources: this.sources,
      log: new RecordedLog(),
      timers: new FakeTimers(),
      random: () => 0,
    });
    this.catalog.start();
  }

  sink(index = 0) {
    return this.sources[index]!.sink;
  }

  handler(): Snapshot[] {
    const seen: Snapshot[] = [];
    this.catalog.follow((snapshot) => void seen.push(snapshot));
    return seen;
  }
}

function assertServices(
  seen: readonly Snapshot[],
  expected: readonly Service[],
): void {
  const services = [...seen.at(-1)!.services.values()];
  const byName = (a: Service, b: Service) => a.name < b.name ? -1 : 1;
  assertEquals(services.toSorted(byName), expected.toSorted(byName));
}

function assertEndpoints(
  seen: readonly Snapshot[],
  ...expected: readonly ServiceEndpoints[]
): void {
  const endpoints = [...seen.at(-1)!.endpoints];
  assertEquals(
    Object.fromEntries(endpoints),
    Object.fromEntries(
      expected.map(({ service, endpoints }) => [service, endpoints]),
    ),
  );
}

Deno.test("NewServiceAddedAndNotified", () => {
  const config = new Config("one");
  const seen = config.handler();
  const service = serviceOf("foo", 10);
  config.sink().add({ services: [service] });
  assertServices(seen, [service]);
  assertEquals(seen.length, 1);
});

Deno.test("ServiceAddedRemovedSetAndNotified", () => {
  const config = new Config("one");
  const seen = config.handler();
  const [foo, bar, foobar] = [
    serviceOf("foo", 10),
    serviceOf("bar", 20),
    serviceOf("foobar", 99),
  ] as const;
  config.sink().add({ services: [foo] });
  assertServices(seen, [foo]);
  config.sink().add({ services: [bar] });
  assertServices(seen, [foo, bar]);
  config.sink().remove({ services: ["default/foo"] });
  assertServices(seen, [bar]);
  config.sink().set({ services: [foobar] });
  assertServices(seen, [foobar]);
  assertEquals(seen.length, 4);
});

Deno.test("NewMultipleSourcesServicesAddedAndNotified", () => {
  const config = new Config("one", "two");
  const seen = config.handler();
  assertEquals(config.sink(0) === config.sink(1), false);
  const [foo, bar] = [serviceOf("foo", 10), serviceOf("bar", 20)] as const;
  config.sink(0).add({ services: [foo] });
  config.sink(1).add({ services: [bar] });
  assertServices(seen, [foo, bar]);
});

Deno.test("NewMultipleSourcesServicesMultipleHandlersAddedAndNotified", () => {
  const config = new Config("one", "two");
  const handlers = [config.handler(), config.handler()];
  const [foo, bar] = [serviceOf("foo", 10), serviceOf("bar", 20)] as const;
  config.sink(0).add({ services: [foo] });
  config.sink(1).add({ services: [bar] });
  for (const seen of handlers) assertServices(seen, [foo, bar]);
});

Deno.test("NewMultipleSourcesEndpointsMultipleHandlersAddedAndNotified", () => {
  const config = new Config("one", "two");
  const handlers = [config.handler(), config.handler()];
  const foo = endpointsOf("foo", "endpoint1:1", "endpoint2:2");
  const bar = endpointsOf("bar", "endpoint3:3", "endpoint4:4");
  config.sink(0).add({ endpoints: [foo] });
  config.sink(1).add({ endpoints: [bar] });
  for (const seen of handlers) assertEndpoints(seen, foo, bar);
});

Deno.test("NewMultipleSourcesEndpointsMultipleHandlersAddRemoveSetAndNotified", () => {
  const config = new Config("one", "two");
  const handlers = [config.handler(), config.handler()];
  const foo = endpointsOf("foo", "endpoint1:1", "endpoint2:2");
  const bar = endpointsOf("bar", "endpoint3:3", "endpoint4:4");
  config.sink(0).add({ endpoints: [foo] });
  config.sink(1).add({ endpoints: [bar] });
  for (const seen of handlers) assertEndpoints(seen, foo, bar);
  const foobar = endpointsOf("foobar", "endpoint5:5", "endpoint6:6");
  config.sink(0).add({ endpoints: [foobar] });
  for (const seen of handlers) assertEndpoints(seen, foo, bar, foobar);
  const other = endpointsOf("foo", "endpoint7:7");
  config.sink(0).add({ endpoints: [other] });
  for (const seen of handlers) assertEndpoints(seen, other, bar, foobar);
  config.sink(1).remove({ endpoints: ["default/bar"] });
  for (const seen of handlers) assertEndpoints(seen, other, foobar);
  config.sink(0).set({ endpoints: [bar] });
  for (const seen of handlers) assertEndpoints(seen, bar);
});

Deno.test("ConfigurationChannels: one name stands for one source", () => {
  assertThrows(() => new Config("one", "one"), TypeError, '"one"');
  assertThrows(() => new Config(""), TypeError, '""');
});

Deno.test("MergeInvoked, MergeFuncInvoked: what one source says is merged as its own", () => {
  const config = new Config("one", "two");
  const seen = config.handler();
  const [foo, bar] = [serviceOf("foo", 10), serviceOf("bar", 20)] as const;
  config.sink(0).add({ services: [foo] });
  config.sink(1).add({ services: [bar] });
  config.sink(1).set({ services: [] });
  assertServices(seen, [foo]);
  config.sink(1).remove({ services: ["default/foo"] });
  assertServices(seen, [foo]);
});

Deno.test("Broadcaster: all are notified, in the order in which they came", () => {
  const config = new Config("one");
  const reported: string[] = [];
  for (const name of ["first", "second"]) {
    config.catalog.follow(() => void reported.push(name));
  }
  config.sink().add({ services: [serviceOf("foo")] });
  assertEquals(reported, ["first", "second"]);
});

Deno.test("services are added, modified and deleted: the full list after each", () => {
  const config = new Config("api");
  const seen = config.handler();
  config.sink().set({ services: [] });
  config.sink().synced();
  assertEquals([seen.length, config.catalog.isSynced], [0, true]);
  const [foo, bar] = [serviceOf("foo", 10), serviceOf("bar", 20)] as const;
  config.sink().add({ services: [foo] });
  assertServices(seen, [foo]);
  config.sink().add({ services: [bar] });
  assertServices(seen, [foo, bar]);
  const modified = serviceOf("foo", 11);
  config.sink().add({ services: [modified] });
  assertServices(seen, [modified, bar]);
  config.sink().remove({ services: ["default/foo"] });
  assertServices(seen, [bar]);
  config.sink().remove({ services: ["default/bar"] });
  assertServices(seen, []);
});

Deno.test("endpoints are added, modified and deleted: the full list after each", () => {
  const config = new Config("api");
  const seen = config.handler();
  const foo = endpointsOf("foo", "10.0.0.1:1");
  const bar = endpointsOf("bar", "10.0.0.2:2");
  config.sink().add({ endpoints: [foo] });
  config.sink().add({ endpoints: [bar] });
  assertEndpoints(seen, foo, bar);
  const modified = endpointsOf("foo", "10.0.0.3:3");
  config.sink().add({ endpoints: [modified] });
  assertEndpoints(seen, modified, bar);
  config.sink().remove({ endpoints: ["default/foo"] });
  assertEndpoints(seen, bar);
  config.sink().remove({ endpoints: ["default/bar"] });
  assertEndpoints(seen);
});

Deno.test("the last service that goes is gone, by SET as well", () => {
  const config = new Config("etcd");
  const seen = config.handler();
  config.sink().set({ services: [serviceOf("foo")] });
  config.sink().set({ services: [] });
  assertServices(seen, []);
});

Deno.test("endpoints that are deleted leave their service", () => {
  const config = new Config("etcd");
  const seen = config.handler();
  const foo = serviceOf("foo");
  config.sink().set({
    services: [foo],
    endpoints: [endpointsOf("foo", "10.0.0.1:80")],
  });
  config.sink().remove({ endpoints: ["default/foo"] });
  assertServices(seen, [foo]);
  assertEndpoints(seen);
});
