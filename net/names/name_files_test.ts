import { assertEquals } from "@std/assert";
import { parseHosts } from "./hosts_file.ts";
import { nameSourcesOf } from "./name_sources.ts";
import { type NameServers, nameServersOf } from "./dns_lookup.ts";

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

Deno.test("a resolv.conf that only the C library understands is left to it", () => {
  const plain = "# of the router\nsearch corp.example\nnameserver 10.0.0.53\n" +
    "nameserver fd00::53\noptions ndots:5 edns0 trust-ad rotate\n";
  assertEquals(nameServersOf(plain), "servers");
  assertEquals(nameServersOf(""), "servers");
  assertEquals(nameServersOf(`${plain}options edns0 use-vc\n`), "special");
  assertEquals(nameServersOf("nameserver fe80::1%eth0\n"), "special");
  const stub = "nameserver 127.0.0.53\noptions edns0 trust-ad\n";
  assertEquals(nameServersOf(stub), "stub");
  assertEquals(nameServersOf(`${stub}nameserver 10.0.0.53\n`), "servers");
});

Deno.test("what cannot be asked from here is left to the platform", () => {
  const of = (
    line: string,
    name = "db.example",
    servers: NameServers = "servers",
  ) => nameSourcesOf(`passwd: x\nhosts: ${line}\n`, name, servers).join(" ");
  assertEquals(of("files dns"), "files dns");
  assertEquals(of("files dns", "db.example", "special"), "files");
  assertEquals(of("dns files"), "dns files");
  assertEquals(of("files ldap dns"), "files");
  assertEquals(of("files # dns"), "files");
  const debian = "files mdns4_minimal [NOTFOUND=return] dns";
  assertEquals(of(debian), "files dns");
  assertEquals(of(debian, "db"), "files dns");
  assertEquals(of(debian, "printer.local"), "files");
  const fedora = "files myhostname resolve [!UNAVAIL=return] dns";
  assertEquals(of(fedora), "files");
  assertEquals(of(fedora, "db.example", "stub"), "files dns");
  assertEquals(of(fedora, "db", "stub"), "files");
  const arch = "mymachines resolve [!UNAVAIL=return] files myhostname dns";
  assertEquals(of(arch, "db.example", "stub"), "dns files");
  assertEquals(of(arch, "container", "stub"), "");
  assertEquals(of("files mdns dns"), "files dns");
  assertEquals(of("files [NOTFOUND=return] dns"), "files");
  assertEquals(of("files [ success=return unavail=continue ] dns"), "files");
  assertEquals(of("constructor dns"), "");
  assertEquals(nameSourcesOf("", "db", "servers"), ["files", "dns"]);
  assertEquals(nameSourcesOf("# hosts: x\n", "db", "servers"), [
    "files",
    "dns",
  ]);
});
