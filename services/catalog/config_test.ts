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

/** A started catalog over scripted sources, and what its handlers were handed. */
class Config {
  readonly catalog: Catalog;
  readonly sources: readonly ScriptedSource[];
  readonly seen: Snapshot[][] = [[], []];

  constructor(...names: readonly string[]) {
    this.sources = names.map((name) => new ScriptedSource(name));
    this.catalog = new Catalog({
      sources: this.sources,
      log: new RecordedLog(),
      timers: new FakeTimers(),
      random: () => 0,
    });
    this.catalog.start();
    for (const seen of this.seen) {
      this.catalog.follow((snapshot) => void seen.push(snapshot));
    }
  }

  /** One line of a script. */
  run(line: string): void {
    const [verb = "", ...words] = line.trim().split(" ");
    if (verb === "has" || verb === "leads") {
      for (const seen of this.seen) {
        const { services, endpoints } = seen.at(-1)!;
        const found = verb === "has"
          ? [...services.values()]
            .map(({ name, ports }) => `${name}:${ports[0]!.port}`)
          : [...endpoints].map(([service, list]) =>
            `${service.split("/")[1]}=${
              list.map(({ address, ports }) => `${address}:${ports[0]!.port}`)
            }`
          );
        assertEquals(found.sort(), words.sort(), line);
      }
      return;
    }
    if (verb === "count") {
      const count = Number(words[0]);
      return assertEquals(this.seen.map(({ length }) => length), [
        count,
        count,
      ]);
    }
    const [, act = "", source = "one"] = /^([a-z]+)(?:@(\w+))?$/.exec(verb)!;
    const { sink } = this.sources.find(({ name }) => name === source)!;
    const lists = words.filter((word) => word.includes("="));
    const others = words.filter((word) => !word.includes("="));
    switch (act) {
      case "remove":
        return sink.remove({ services: others.map((it) => `default/${it}`) });
      case "unlead":
        return sink.remove({ endpoints: others.map((it) => `default/${it}`) });
      case "synced":
        return sink.synced();
      case "add":
      case "set":
        return sink[act]({
          ...lists.length > 0 ? {} : { services: others.map(serviceIn) },
          ...lists.length === 0 ? {} : { endpoints: lists.map(endpointsIn) },
        });
    }
    throw new TypeError(`There is no such step: ${line}`);
  }
}

/** `foo:10` */
function serviceIn(text: string) {
  const [name = "", port] = text.split(":");
  return serviceOf(name, Number(port));
}

/** `foo=e1:1,e2:2` */
function endpointsIn(text: string) {
  const [name = "", list = ""] = text.split("=");
  return endpointsOf(name, ...list.split(","));
}

/**
 * By upstream's name, a step a line: `add`, `set` and `remove` of services
 * `NAME:PORT` and of endpoints `NAME=ADDRESS:PORT,…`, by a source (`@two`, else the
 * first); `unlead` removes endpoints. Then what each of two handlers has: services
 * (`has`), endpoints (`leads`), and how often it was called (`count`).
 */
const SCRIPTS: Readonly<Record<string, string>> = {
  NewServiceAddedAndNotified: `
    add foo:10
    has foo:10
    count 1`,
  ServiceAddedRemovedSetAndNotified: `
    add foo:10
    has foo:10
    add bar:20
    has foo:10 bar:20
    remove foo
    has bar:20
    set foobar:99
    has foobar:99
    count 4`,
  "NewMultipleSourcesServices(MultipleHandlers)AddedAndNotified": `
    add foo:10
    add@two bar:20
    has foo:10 bar:20`,
  "NewMultipleSourcesEndpointsMultipleHandlersAdd(RemoveSet)AndNotified": `
    add foo=e1:1,e2:2
    add@two bar=e3:3,e4:4
    leads foo=e1:1,e2:2 bar=e3:3,e4:4
    add foobar=e5:5,e6:6
    leads foo=e1:1,e2:2 bar=e3:3,e4:4 foobar=e5:5,e6:6
    add foo=e7:7
    leads foo=e7:7 bar=e3:3,e4:4 foobar=e5:5,e6:6
    unlead@two bar
    leads foo=e7:7 foobar=e5:5,e6:6
    set bar=e3:3,e4:4
    leads bar=e3:3,e4:4`,
  "MergeInvoked, MergeFuncInvoked: what one source says is merged as its own": `
    add foo:10
    add@two bar:20
    set@two
    has foo:10
    remove@two foo
    has foo:10`,
  "services are added, modified and deleted: the full list after each": `
    set
    synced
    count 0
    add foo:10
    has foo:10
    add bar:20
    has foo:10 bar:20
    add foo:11
    has foo:11 bar:20
    remove foo
    has bar:20
    remove bar
    has`,
  "endpoints are added, modified and deleted: the full list after each": `
    add foo=10.0.0.1:1
    add bar=10.0.0.2:2
    leads foo=10.0.0.1:1 bar=10.0.0.2:2
    add foo=10.0.0.3:3
    leads foo=10.0.0.3:3 bar=10.0.0.2:2
    unlead foo
    leads bar=10.0.0.2:2
    unlead bar
    leads`,
  "the last service that goes is gone, by SET as well": `
    set foo:80
    set
    has`,
  "endpoints that are deleted leave their service": `
    set foo:80
    set foo=10.0.0.1:80
    unlead foo
    has foo:80
    leads`,
};

for (const [name, script] of Object.entries(SCRIPTS)) {
  Deno.test(name, () => {
    const config = new Config("one", "two");
    for (const line of script.trim().split("\n")) config.run(line);
  });
}

Deno.test("ConfigurationChannels: one name stands for one source", () => {
  assertThrows(() => new Config("one", "one"), TypeError, '"one"');
  assertThrows(() => new Config(""), TypeError, '""');
});

Deno.test("Broadcaster: all are notified, in the order in which they came", () => {
  const config = new Config("one");
  const reported: string[] = [];
  for (const name of ["first", "second"]) {
    config.catalog.follow(() => void reported.push(name));
  }
  config.run("add foo:80");
  assertEquals(reported, ["first", "second"]);
});
