import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  type Answerer,
  dnsAnswer,
  DnsServer,
  fromTable,
} from "../../tests/support/peers/dns_server.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { deadPort } from "../../tests/support/rigs/proxy_rig.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { dialTarget } from "../dial/dial.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { openLibc } from "../libc/libc.ts";
import { UNCHANGED_MS } from "./followed_text.ts";
import { MachineResolver } from "./machine_resolver.ts";
import { LookupError } from "./resolver.ts";
import { type DnsConfig, parseResolvConf } from "./resolv_conf.ts";

/** Longer than anything takes, however busy the machine is. */
const PATIENT = { tryMs: 60_000, timeoutMs: 60_000 };

/** A resolver whose machine is a folder, and whose name servers are these. */
class Scene implements AsyncDisposable {
  readonly folder: string;
  readonly resolver: MachineResolver;
  readonly platform: string[] = [];
  laterMs = 0;

  constructor(
    servers: readonly Pick<DnsServer, "address">[],
    about: Partial<DnsConfig> = {},
    hosts = "10.0.0.9 known.test\n",
    timers: Timers = systemTimers,
  ) {
    this.folder = Deno.makeTempDirSync();
    const files = {
      hosts: `${this.folder}/hosts`,
      resolvConf: `${this.folder}/resolv.conf`,
      nsswitch: `${this.folder}/nsswitch.conf`,
    };
    Deno.writeTextFileSync(files.hosts, hosts);
    Deno.writeTextFileSync(files.nsswitch, "hosts: files dns ldap\n");
    this.resolver = new MachineResolver({
      timers: {
        now: () => timers.now() + this.laterMs,
        after: (delayMs, callback) => timers.after(delayMs, callback),
      },
      files,
      config: {
        ...parseResolvConf("")!,
        ...PATIENT,
        ...about,
        servers: servers.map(({ address }) => address),
      },
      platform: (host) => {
        this.platform.push(host);
        return Promise.resolve([]);
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
  "db.corp.example": ["10.0.0.2"],
  "xn--bcher-kva.test": ["10.0.0.3"],
});
const SILENT: Answerer = () => [];

Deno.test("names are asked of name servers, of both kinds at once", async () => {
  await using server = DnsServer.open(TABLE);
  await using scene = new Scene([server]);
  assertEquals(await scene.lookup("DB.test"), "10.0.0.1");
  assertEquals(server.asked.map(({ type }) => type).sort(), ["A", "AAAA"]);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
  assertEquals(server.asked.length, 2); // It was kept.
  const both = await scene.lookup("both.test");
  assertEquals(both.split(" ").sort(), ["10.0.0.1", "::1"]);
  assertEquals(await scene.lookup("bücher.test"), "10.0.0.3");
  assertEquals(scene.platform, []);
});

Deno.test("a name that nobody knows is told so, by whoever is asked last", async () => {
  await using server = DnsServer.open(TABLE);
  await using scene = new Scene([server]);
  await assertRejects(
    () => scene.lookup("nobody.test"),
    LookupError,
    "lookup nobody.test: no such host",
  );
  assertEquals(scene.platform, ["nobody.test"]);
});

Deno.test("addresses, localhost, hosts and what is no name need nobody", async () => {
  await using server = DnsServer.open(SILENT);
  await using scene = new Scene([server]);
  assertEquals(await scene.lookup("10.1.2.3"), "10.1.2.3");
  assertEquals(await scene.lookup("known.test."), "10.0.0.9");
  assertEquals(await scene.lookup("LocalHost"), "127.0.0.1 ::1");
  assertEquals(await scene.lookup("a.localhost"), "127.0.0.1 ::1");
  for (const host of ["nope.invalid", "127.1", "a b", ""]) {
    await assertRejects(() => scene.lookup(host), LookupError, "no such host");
  }
  assertEquals([server.asked, scene.platform], [[], []]);
});

Deno.test("search domains follow their dots", async () => {
  await using server = DnsServer.open(TABLE);
  const search = ["none.example", "corp.example"];
  await using scene = new Scene([server], { search });
  assertEquals(await scene.lookup("db"), "10.0.0.2");
  const names = () => [...new Set(server.asked.map(({ name }) => name))];
  assertEquals(names(), ["db.none.example", "db.corp.example"]);
  server.asked.length = 0;
  assertEquals(await scene.lookup("db.test."), "10.0.0.1");
  await assertRejects(() => scene.lookup("nobody.test"), LookupError);
  assertEquals(names(), [
    "db.test",
    "nobody.test",
    "nobody.test.none.example",
    "nobody.test.corp.example",
  ]);
});

Deno.test("a silent server costs one wait, and then is asked last", async () => {
  await using dead = DnsServer.open(SILENT);
  await using alive = DnsServer.open(TABLE);
  await using scene = new Scene([dead, alive], { tryMs: 40 });
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
  const { length } = dead.asked;
  assert(length > 0);
  assertEquals(await scene.lookup("both.test").then((all) => all.length), 12);
  assertEquals(dead.asked.length, length);
});

Deno.test("a server that is not there costs nothing", {
  ignore: openLibc() === undefined,
}, async () => {
  const nobody = { address: { hostname: "127.0.0.1", port: deadPort() } };
  await using alive = DnsServer.open(TABLE);
  await using scene = new Scene([nobody, alive]);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
  await using lonely = new Scene([nobody]);
  await assertRejects(
    () => lonely.lookup("db.test"),
    LookupError,
    "lookup db.test: the name server refuses connections",
  );
});

Deno.test("a server that never answers is reported as that", async () => {
  await using server = DnsServer.open(SILENT);
  const timers = new FakeTimers();
  const about = { tryMs: 1_000, timeoutMs: 5_000 };
  await using scene = new Scene([server], about, "", timers);
  const failing = assertRejects(() => scene.lookup("slow.test"), LookupError);
  await server.untilAsked(2);
  timers.advance(1_000);
  // The second time without what might be dropped.
  await server.untilAsked(4);
  timers.advance(1_000 + 5_000);
  const error = await failing;
  assertEquals(error.message, "lookup slow.test: i/o timeout");
  assertEquals(error.fault, "timeout");
  assertEquals(server.asked.map(({ hasEdns }) => hasEdns), [
    true,
    true,
    false,
    false,
  ]);
  assertEquals(new Set(server.asked.map(({ port }) => port)).size, 2);
  assertEquals(new Set(server.asked.map(({ id }) => id)).size, 4);
});

Deno.test("a server that cannot say is reported as that", async () => {
  await using server = DnsServer.open((asked) => [
    dnsAnswer(asked, [], { code: 2 }),
  ]);
  await using scene = new Scene([server]);
  await assertRejects(
    () => scene.lookup("db.test"),
    LookupError,
    "lookup db.test: server misbehaving",
  );
});

Deno.test("a server that does not know EDNS is asked without", async () => {
  await using server = DnsServer.open((asked) =>
    asked.hasEdns ? [dnsAnswer(asked, [], { code: 1 })] : TABLE(asked)
  );
  await using scene = new Scene([server]);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
});

Deno.test("one kind that is never answered does not keep the other", async () => {
  await using server = DnsServer.open((asked) =>
    asked.type === "A" ? TABLE(asked) : []
  );
  await using scene = new Scene([server]);
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
  await using scene = new Scene([server]);
  assertEquals((await scene.resolver.lookup("many.test")).length, 40);
  await using byTcp = new Scene([server], {
    usesTcp: true,
  });
  server.asked.length = 0;
  await byTcp.lookup("many.test");
  assertEquals(server.asked.map(({ transport }) => transport), ["tcp", "tcp"]);
});

Deno.test("whoever says again and again that it does not fit is asked once by TCP", async () => {
  await using server = DnsServer.open((asked) =>
    asked.transport === "udp" && asked.type === "A"
      ? Array(20).fill(dnsAnswer(asked, [], { truncated: true }))
      : TABLE(asked)
  );
  await using scene = new Scene([server]);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
  const byTcp = server.asked.filter(({ transport }) => transport === "tcp");
  assertEquals(byTcp.length, 1);
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
  await using scene = new Scene([server]);
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
});

Deno.test("aliases in a circle and broken messages are a failure, not a hang", async () => {
  await using server = DnsServer.open((asked) => {
    const { name } = asked;
    if (name !== "circle.test") {
      const data = asked.type === "A" ? "10.0.0.1" : "::1";
      const type = asked.type as "A";
      return [dnsAnswer(asked, [{ type, name, ttl: 60, data }]).slice(0, -1)];
    }
    return [dnsAnswer(asked, [
      { type: "CNAME", name, ttl: 60, data: "b.test" },
      { type: "CNAME", name: "b.test", ttl: 60, data: name },
    ])];
  });
  await using scene = new Scene([server]);
  await assertRejects(
    () => scene.lookup("circle.test"),
    LookupError,
    "lookup circle.test: aliases go round in circles",
  );
  await assertRejects(
    () => scene.lookup("broken.test"),
    LookupError,
    "lookup broken.test: cannot unmarshal DNS message",
  );
});

Deno.test("hosts are read again when they have changed", async () => {
  await using server = DnsServer.open(TABLE);
  await using scene = new Scene([server]);
  assertEquals(await scene.lookup("known.test"), "10.0.0.9");
  Deno.writeTextFileSync(
    `${scene.folder}/hosts`,
    "10.0.0.10 known.test db.test\n",
  );
  scene.laterMs = UNCHANGED_MS;
  assertEquals(await scene.lookup("known.test"), "10.0.0.10");
  assertEquals(await scene.lookup("db.test"), "10.0.0.10");
});

Deno.test("names in hosts answer at once beside 1,000 dials to a dead name server", async () => {
  await using server = DnsServer.open((asked) =>
    asked.name.endsWith("dead.test") ? [] : TABLE(asked)
  );
  await using scene = new Scene(
    [server],
    {},
    "127.0.0.1 known.test\n",
  );
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  const giveUp = new AbortController();
  const dial = (host: string, signal?: AbortSignal) =>
    dialTarget({ protocol: "tcp", address: `${host}:${port}` }, {
      resolver: scene.resolver,
      ...(signal === undefined ? {} : { signal }),
    });
  const dead = Array.from(
    { length: 1_000 },
    (_, index) => dial(`n${index}.dead.test`, giveUp.signal),
  );
  const ends = Promise.allSettled(dead);
  const conduit = await dial("known.test");
  assertEquals(await scene.lookup("db.test"), "10.0.0.1");
  assert(!server.asked.some(({ name }) => name === "known.test"));
  (await listener.accept()).close();
  conduit.reset("the test is over");
  giveUp.abort();
  await ends;
});
