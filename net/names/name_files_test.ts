import { assertEquals } from "@std/assert";
import { parseHosts } from "./hosts_file.ts";
import { nameSourcesOf } from "./name_sources.ts";
import { parseResolvConf, TRY_MS } from "./resolv_conf.ts";

Deno.test("a hosts file has several names for an address, and the other way round", () => {
  const hosts = parseHosts(
    "127.0.0.1 localhost\n" +
      "# 10.0.0.9 nobody\n" +
      "10.0.0.1\tDB.example db # the old one\r\n" +
      "fd00::1 db\n" +
      "10.0.0.1 db\n" +
      "nonsense host\n" +
      "10.0.0.2\n" +
      "10.0.0.3 __proto__ constructor\n",
  );
  assertEquals(hosts.get("db"), ["10.0.0.1", "fd00::1"]);
  assertEquals(hosts.get("db.example"), ["10.0.0.1"]);
  assertEquals(hosts.get("host"), undefined);
  assertEquals(hosts.get("nobody"), undefined);
  assertEquals(hosts.get("__proto__"), ["10.0.0.3"]);
});

Deno.test("a resolv.conf says who is asked, how often and for what", () => {
  const config = parseResolvConf(
    "# of the router\ndomain old.example\nsearch ns.svc.cluster.local Corp.example.\n" +
      "nameserver 10.0.0.53\nnameserver fd00::53\nnameserver 10.0.0.54\n" +
      "nameserver 10.0.0.55\noptions ndots:5 timeout:2 attempts:3 rotate\n" +
      "options use-vc ; all of them\n",
    { options: "attempts:9" },
  )!;
  assertEquals(config.servers.map(({ hostname }) => hostname), [
    "10.0.0.53",
    "fd00::53",
    "10.0.0.54",
  ]);
  assertEquals(config.search, ["ns.svc.cluster.local", "corp.example"]);
  const { ndots, timeoutMs, tryMs, attempts, rotates, usesTcp } = config;
  assertEquals({ ndots, timeoutMs, tryMs, attempts, rotates, usesTcp }, {
    ndots: 5,
    timeoutMs: 2_000,
    tryMs: 2_000,
    attempts: 5,
    rotates: true,
    usesTcp: true,
  });
});

Deno.test("the environment may say where names are searched", () => {
  const config = parseResolvConf("search a.example\n", {
    search: "b.example c.example",
  })!;
  assertEquals(config.search, ["b.example", "c.example"]);
});

Deno.test("an empty resolv.conf means this machine, and the usual times", () => {
  const { servers, ndots, attempts, timeoutMs, tryMs } = parseResolvConf("")!;
  assertEquals(servers, [{ hostname: "127.0.0.1", port: 53 }]);
  assertEquals([ndots, attempts, timeoutMs, tryMs], [1, 2, 5_000, TRY_MS]);
  // Of an interface: the platform knows which.
  assertEquals(parseResolvConf("nameserver fe80::1%eth0\n"), undefined);
});

const AROUND = { hostname: "node7", asksStub: false, hasMdnsAllow: false };

Deno.test("what cannot be asked from here is left to the platform", () => {
  const of = (line: string, name = "db.example", around = {}) =>
    nameSourcesOf(`passwd: x\nhosts: ${line}\n`, name, { ...AROUND, ...around })
      .join(" ");
  assertEquals(of("files dns"), "files dns");
  assertEquals(of("dns files"), "dns files");
  assertEquals(of("files ldap dns"), "files platform");
  assertEquals(of("files # dns"), "files");
  const debian = "files mdns4_minimal [NOTFOUND=return] dns";
  assertEquals(of(debian), "files dns");
  assertEquals(of(debian, "printer.local"), "files platform");
  const fedora = "files myhostname resolve [!UNAVAIL=return] dns";
  assertEquals(of(fedora), "files platform");
  assertEquals(of(fedora, "db.example", { asksStub: true }), "files dns");
  assertEquals(of(fedora, "db", { asksStub: true }), "files platform");
  assertEquals(of(fedora, "node7", { asksStub: true }), "files platform");
  assertEquals(of("files mdns dns"), "files dns");
  assertEquals(
    of("files mdns dns", "a.b", { hasMdnsAllow: true }),
    [
      "files",
      "platform",
    ].join(" "),
  );
  assertEquals(of("files [NOTFOUND=return] dns"), "files platform");
  assertEquals(
    of("files [ success=return unavail=continue ] dns"),
    [
      "files",
      "platform",
    ].join(" "),
  );
  assertEquals(of("constructor dns"), "platform");
  assertEquals(nameSourcesOf(undefined, "db", AROUND), ["files", "dns"]);
});
