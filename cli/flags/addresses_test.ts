import { assertEquals, assertThrows } from "@std/assert";
import { UsageError } from "./usage_error.ts";
import {
  formatHostPort,
  parseForwardSpec,
  parseHostPort,
  parseServerList,
  SERVERS_MAX,
} from "./addresses.ts";

const at = (host: string, port: number) => ({ host, port });

Deno.test("parseHostPort() reads names, IPv4 and bracketed IPv6", () => {
  assertEquals(parseHostPort("x", "node7:22"), at("node7", 22));
  assertEquals(parseHostPort("x", "10.0.0.7:65535"), at("10.0.0.7", 65_535));
  assertEquals(parseHostPort("x", "[fd00::7]:1"), at("fd00::7", 1));
});

Deno.test("formatHostPort() writes what parseHostPort() reads", () => {
  for (const text of ["node7:22", "10.0.0.7:80", "[fd00::7]:443"]) {
    assertEquals(formatHostPort(parseHostPort("x", text)), text);
  }
});

// deno-fmt-ignore: the columns are the point.
const BAD_ADDRESSES: readonly [text: string, line: string][] = [
  ["node7",        'Cannot use --server: saw "node7", wanted HOST:PORT'],
  ["node7:",       'Cannot use --server: saw "node7:", wanted HOST:PORT'],
  [":22",          'Cannot use --server: saw ":22", wanted HOST:PORT'],
  ["fd00::7:22",
    'Cannot use --server: saw "fd00::7:22", wanted HOST:PORT; an IPv6 address stands in ' +
      'brackets, and a port behind them: [::1]:22'],
  ["node7:0",      'Cannot use --server: saw port 0 in "node7:0", wanted 1 to 65535'],
  ["node7:70000",  'Cannot use --server: saw port 70000 in "node7:70000", wanted 1 to 65535'],
  ["http://a:80",  'Cannot use --server: saw "http://a:80", wanted HOST:PORT; leave out what ends in ://, and any path'],
  ["user@a:80",    'Cannot use --server: saw "user@a:80", wanted HOST:PORT'],
];

for (const [text, line] of BAD_ADDRESSES) {
  Deno.test(`parseHostPort() refuses ${text}`, () => {
    const parse = () => parseHostPort("--server", text);
    assertEquals(assertThrows(parse, UsageError).message, line);
  });
}

// deno-fmt-ignore: the columns are the point.
const FORWARDS: readonly [text: string, spec: ReturnType<typeof parseForwardSpec>][] = [
  ["5432:db:5432",                  { listen: at("127.0.0.1", 5432), target: at("db", 5432) }],
  [":5432:db:5432",                 { listen: at("127.0.0.1", 5432), target: at("db", 5432) }],
  ["0:db:5432@node7",               { listen: at("127.0.0.1", 0), target: at("db", 5432), node: "node7" }],
  ["*:80:[fd00::7]:8080",           { listen: at("0.0.0.0", 80), target: at("fd00::7", 8080) }],
  ["[::1]:80:[fd00::7]:8080@a.b-c", { listen: at("::1", 80), target: at("fd00::7", 8080), node: "a.b-c" }],
  ["10.0.0.1:53:dns.local:53",      { listen: at("10.0.0.1", 53), target: at("dns.local", 53) }],
];

for (const [text, spec] of FORWARDS) {
  Deno.test(`parseForwardSpec() reads ${text}`, () => {
    assertEquals(parseForwardSpec(text), spec);
  });
}

const BAD_FORWARDS = [
  "",
  "5432",
  "5432:db",
  "db:5432",
  "5432:db:5432@",
  "5432:db:5432@a@b",
  "5432::5432",
  "5432:fd00::7:80",
  "x:y:db:5432",
  "a:b:5432:db:5432",
];

for (const text of BAD_FORWARDS) {
  Deno.test(`parseForwardSpec() refuses "${text}" and shows the form`, () => {
    const { message } = assertThrows(() => parseForwardSpec(text), UsageError);
    assertEquals(
      message,
      `Cannot forward "${text}": wanted [BIND:]PORT:HOST:PORT[@NODE], such as ` +
        "5432:db.internal:5432 or 127.0.0.1:8080:[fd00::7]:80@node7",
    );
  });
}

Deno.test("parseForwardSpec() names a port that cannot be", () => {
  assertThrows(() => parseForwardSpec("70000:a:1"), UsageError, "port 70000");
  assertThrows(
    () => parseForwardSpec("1:a:0"),
    UsageError,
    "wanted 1 to 65535",
  );
});

Deno.test("a list of servers is read at the commas between them", () => {
  assertEquals(parseServerList("unix:/a"), ["unix:/a"]);
  assertEquals(parseServerList("unix:/a,unix:/b, c:1"), [
    "unix:/a",
    "unix:/b",
    "c:1",
  ]);
  assertEquals(parseServerList("a:1,[::1]:2,a:1"), ["a:1", "[::1]:2"]);
  assertEquals(parseServerList("a,b"), ["a", "b"]);
  assertEquals(parseServerList("unix:/a,b/c"), ["unix:/a,b/c"]);
  for (const text of ["a:1,", ",a:1", "a:1,,b:1"]) {
    assertThrows(
      () => parseServerList(text),
      UsageError,
      "either side of each comma",
    );
  }
  const many = Array.from({ length: SERVERS_MAX + 1 }, (_, i) => `a:${i + 1}`);
  assertThrows(
    () => parseServerList(many.join()),
    UsageError,
    "names 17 servers",
  );
});
