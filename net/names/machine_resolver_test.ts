import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  type Answerer,
  dnsAnswer,
  DnsServer,
  fromTable,
} from "../../tests/support/peers/dns_server.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { dialTarget } from "../dial/dial.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { UNCHANGED_MS } from "./hosts_file.ts";
import { FRESH_MS } from "./kept_answers.ts";
import { DOMAIN_LOOKUPS_MAX, MachineResolver } from "./machine_resolver.ts";
import { LookupError } from "./resolver.ts";

/** A resolver whose machine is a folder, and whose name server is this one. */
class Scene implements AsyncDisposable {
  readonly folder: string;
  readonly resolver: MachineResolver;
  /** What the C library was asked for. */
  readonly platform: string[] = [];
  /** What it answers. */
  last: (host: string) => Promise<readonly string[]> = () =>
    Promise.resolve([]);
  laterMs = 0;

  constructor(server: DnsServer, hosts = "10.0.0.9 known.test\n") {
    this.folder = Deno.makeTempDirSync();
    Deno.writeTextFileSync(`${this.folder}/hosts`, hosts);
    Deno.writeTextFileSync(
      `${this.folder}/nsswitch.conf`,
      "hosts: files dns ldap\n",
    );
    const timers: Timers = {
      now: () => systemTimers.now() + this.laterMs,
      after: (delayMs, callback) => systemTimers.after(delayMs, callback),
    };
    const { hostname, port } = server.address;
    this.resolver = new MachineResolver({
      timers,
      folder: this.folder,
      nameServer: { ipAddr: hostname, port },
      platform: (host) => {
        this.platform.push(host);
        return this.last(host);
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }

  async lookup(host: string): Promise<string> {
    return (await this.resolver.lookup(host)).join(" ");
  }
}

const TABLE = fromTable({
  "db.test": ["10.0.0.1"],
  "both.test": ["10.0.0.1", "::1"],
  "xn--bcher-kva.test": ["10.0.0.3"],
});
const SILENT: Answerer = () => [];
const DEAD_END: Answerer = (asked) =>
  asked.name.endsWith("dead.test") ? [] : TABLE(asked);

Deno.test("names are asked of name servers, of both kinds at once", async () => {
  await using server = DnsServer.open(TABLE);
  await using scene = new Scene(server);
  assertEquals(await scene.lookup("DB.test"), "10.0.0.1");
  assertEquals(server.asked.map(({ type }) => type).sort(), ["A", "AAAA"]);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
  assertEquals(server.asked.length, 2); // It was kept.
  scene.laterMs = FRESH_MS;
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
  assertEquals(server.asked.length, 4);
  const both = await scene.lookup("both.test");
  assertEquals(both.split(" ").sort(), ["10.0.0.1", "::1"]);
  assertEquals(await scene.lookup("bücher.test"), "10.0.0.3");
  assertEquals(scene.platform, []);
});

Deno.test("an alias leads to its addresses, in one answer or two", async () => {
  await using server = DnsServer.open((asked) => {
    const { name } = asked;
    if (!name.endsWith("alias.test")) return TABLE(asked);
    const alias = { type: "CNAME", name, ttl: 60, data: "db.test" } as const;
    const address = {
      type: "A",
      name: "db.test",
      ttl: 60,
      data: "10.0.0.1",
    } as const;
    const isWhole = name === "whole.alias.test" && asked.type === "A";
    return [dnsAnswer(asked, isWhole ? [alias, address] : [alias])];
  });
  await using scene = new Scene(server);
  assertEquals(await scene.lookup("whole.alias.test"), "10.0.0.1");
  assertEquals(await scene.lookup("half.alias.test"), "10.0.0.1");
});

Deno.test("what name servers do not find is left to the C library", async () => {
  await using server = DnsServer.open((asked) =>
    asked.name === "servfail.test"
      ? [dnsAnswer(asked, [], { code: 2 })]
      : TABLE(asked)
  );
  await using scene = new Scene(server);
  await assertRejects(
    () => scene.lookup("nobody.test"),
    LookupError,
    "lookup nobody.test: no such host",
  );
  scene.last = (host) =>
    Promise.reject(new LookupError(host, "server misbehaving", "failed"));
  await assertRejects(
    () => scene.lookup("servfail.test"),
    LookupError,
    "lookup servfail.test: server misbehaving",
  );
  // Of another source, say.
  scene.last = () => Promise.resolve(["10.0.0.7"]);
  assertEquals(await scene.lookup("ldap.test"), "10.0.0.7");
  const asked = ["nobody.test", "servfail.test", "ldap.test"];
  assertEquals(scene.platform, asked);
});

Deno.test("addresses, localhost, hosts and what is no name need no server", async () => {
  await using server = DnsServer.open(SILENT);
  await using scene = new Scene(server);
  assertEquals(await scene.lookup("10.1.2.3"), "10.1.2.3");
  assertEquals(await scene.lookup("known.test."), "10.0.0.9");
  assertEquals(await scene.lookup("LocalHost"), "127.0.0.1 ::1");
  assertEquals(await scene.lookup("a.localhost"), "127.0.0.1 ::1");
  for (const host of ["nope.invalid", "127.1", "a b", ""]) {
    await assertRejects(() => scene.lookup(host), LookupError, "no such host");
  }
  assertEquals([server.asked, scene.platform], [[], []]);
});

Deno.test("a server that never answers is reported as that", async () => {
  await using server = DnsServer.open(SILENT);
  await using scene = new Scene(server);
  const error = await assertRejects(
    () => scene.lookup("slow.test"),
    LookupError,
    "lookup slow.test: i/o timeout",
  );
  assertEquals(error.fault, "timeout");
  // A stuck thread of the platform would say no more.
  assertEquals(scene.platform, []);
  // A datagram may be lost.
  const types = server.asked.map(({ type }) => type);
  assert(types.filter((type) => type === "A").length > 1, `${types}`);
});

Deno.test("one kind that is never answered does not keep the other", async () => {
  await using server = DnsServer.open((asked) =>
    asked.type === "A" ? TABLE(asked) : []
  );
  await using scene = new Scene(server);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
});

Deno.test("what does not fit a datagram comes by TCP", async () => {
  const addresses = Array.from({ length: 40 }, (_, index) => `10.9.0.${index}`);
  const all = fromTable({ "many.test": addresses });
  await using server = DnsServer.open((asked) =>
    asked.transport === "udp" && asked.type === "A"
      ? [dnsAnswer(asked, [], { truncated: true })]
      : all(asked)
  );
  await using scene = new Scene(server);
  assertEquals((await scene.resolver.lookup("many.test")).length, 40);
});

Deno.test("forged answers are passed over, and the right one is taken", async () => {
  await using server = DnsServer.open((asked) => {
    if (asked.type === "AAAA") return TABLE(asked);
    const evil = [{
      type: "A",
      name: asked.name,
      ttl: 60,
      data: "6.6.6.6",
    }] as const;
    return [
      dnsAnswer({ ...asked, id: asked.id ^ 0x100 }, evil),
      dnsAnswer({ ...asked, name: "other.test" }, evil),
      new Uint8Array(3),
      ...TABLE(asked),
    ];
  });
  await using scene = new Scene(server);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
});

Deno.test("aliases in a circle end", async () => {
  await using server = DnsServer.open((asked) => {
    const { name } = asked;
    return [dnsAnswer(asked, [
      { type: "CNAME", name, ttl: 60, data: "b.test" },
      { type: "CNAME", name: "b.test", ttl: 60, data: name },
    ])];
  });
  await using scene = new Scene(server);
  await assertRejects(() => scene.lookup("circle.test"), LookupError);
});

Deno.test("hosts are read again when they have changed", async () => {
  await using server = DnsServer.open(TABLE);
  await using scene = new Scene(server);
  assertEquals(await scene.lookup("known.test"), "10.0.0.9");
  Deno.writeTextFileSync(
    `${scene.folder}/hosts`,
    "10.0.0.10 known.test db.test\n",
  );
  scene.laterMs = UNCHANGED_MS;
  assertEquals(await scene.lookup("known.test"), "10.0.0.10");
  assertEquals(await scene.lookup("db.test"), "10.0.0.10");
});

/** Dials that end when the test does. */
function dials({ resolver }: Scene) {
  const giveUp = new AbortController();
  const ends: Promise<unknown>[] = [];
  const dial = (address: string, signal?: AbortSignal) =>
    dialTarget({ protocol: "tcp", address }, {
      resolver,
      ...(signal === undefined ? {} : { signal }),
    });
  return {
    dial,
    dialDead(count: number, nameOf: (n: number) => string): void {
      for (let n = 0; n < count; n++) {
        ends.push(dial(`${nameOf(n)}:1`, giveUp.signal).catch(() => {}));
      }
    },
    async [Symbol.asyncDispose](): Promise<void> {
      giveUp.abort();
      await Promise.all(ends);
    },
  };
}

Deno.test("names in hosts answer at once beside 1,000 dials to a dead name server", async () => {
  await using server = DnsServer.open(DEAD_END);
  await using scene = new Scene(server, "127.0.0.1 known.test\n");
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  await using all = dials(scene);
  all.dialDead(1_000, (n) => `n${n}.dead.test`);
  const conduit = await all.dial(`known.test:${listener.addr.port}`);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
  assert(!server.asked.some(({ name }) => name === "known.test"));
  (await listener.accept()).close();
  conduit.reset("the test is over");
});

Deno.test("a name of a domain whose places are all taken gets one", async () => {
  await using server = DnsServer.open((asked) =>
    asked.name.startsWith("dead") ? [] : TABLE(asked)
  );
  await using scene = new Scene(server);
  await using all = dials(scene);
  // "db.test" is of the same domain as each of these.
  all.dialDead(DOMAIN_LOOKUPS_MAX, (n) => `dead${n}.test`);
  all.dialDead(DOMAIN_LOOKUPS_MAX, (n) => `dead${n}.db.test`);
  await server.untilAsked(DOMAIN_LOOKUPS_MAX);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
});
