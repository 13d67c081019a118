import { assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../tests/support/memory/prng.ts";
import { parseRule, RULE_LENGTH_MAX, RuleError } from "./rule.ts";

/** A rule in one line, for comparing. */
function summary(text: string): string {
  const rule = parseRule(text);
  if (rule.kind === "path") return `unix ${rule.pattern.pattern}`;
  const { protocol, host, ports } = rule;
  const where = host.kind === "any"
    ? "any"
    : host.kind === "name"
    ? `name ${host.pattern.pattern}`
    : `${host.prefix.address.join(".")}/${host.prefix.length}`;
  const list = ports.map(({ first, last }) => `${first}-${last}`).join(" ");
  return `${protocol} ${where} ${list}`;
}

// deno-fmt-ignore: the columns are the point.
const READ: readonly (readonly [rule: string, summary: string])[] = [
  ["tcp:127.0.0.1:10250",          "tcp 127.0.0.1/32 10250-10250"],
  ["tcp:10.0.0.0/8:*",             "tcp 10.0.0.0/8 1-65535"],
  ["udp:*:53",                     "udp any 53-53"],
  ["*:*:*",                        "* any 1-65535"],
  ["  TCP:Example.COM.:443 ",      "tcp name example.com 443-443"],
  ["tcp:*.internal:80,443,8000-8100", "tcp name *.internal 80-80 443-443 8000-8100"],
  ["tcp:edge-*-gw_1:1-1",          "tcp name edge-*-gw_1 1-1"],
  ["tcp:[::1]:80",                 "tcp 0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1/128 80-80"],
  ["tcp:[fd00::/8]:*",             "tcp 253.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0/8 1-65535"],
  ["tcp:[fd00::]/8:*",             "tcp 253.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0/8 1-65535"],
  ["tcp:[::ffff:10.0.0.1]:80",     "tcp 10.0.0.1/32 80-80"],
  ["tcp:0.0.0.0/0:*",              "tcp 0.0.0.0/0 1-65535"],
  ["tcp:[::/0]:*",                 "tcp 0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0/0 1-65535"],
  ["tcp:a:65535",                  "tcp name a 65535-65535"],
  ["unix:/run/app.sock",           "unix /run/app.sock"],
  ["unix:/run/with blank:1",       "unix /run/with blank:1"],
  ["unix:/run/app/*.sock",         "unix /run/app/*.sock"],
  ["unix:/run/...",                "unix /run/..."],
  ["unix:/run/.hidden",            "unix /run/.hidden"],
  ["unix:@abstract",               "unix @abstract"],
  ["unix:*",                       "unix *"],
  ["unix:*/docker.sock",           "unix */docker.sock"],
];

Deno.test("rules are read as the language says", () => {
  for (const [text, wanted] of READ) assertEquals(summary(text), wanted, text);
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly (readonly [rule: string, column: number, says: RegExp])[] = [
  ["",                           1, /no colon.*tcp:10\.0\.0\.0\/8:443/],
  ["tcp",                        1, /no colon/],
  ["http:a:80",                  1, /saw "http", wanted tcp, udp, unix or \*/],
  [":a:80",                      1, /saw ""/],
  ["10.0.0.1:80",                1, /saw "10\.0\.0\.1"/],
  ["tcp:a",                      6, /no ports.*:443/],
  ["tcp::80",                    5, /no host/],
  ["tcp:a:",                     7, /saw "", wanted a port/],
  ["tcp:a:0",                    7, /from 1 to 65535/],
  ["tcp:a:65536",                7, /from 1 to 65535/],
  ["tcp:a:080000",               7, /from 1 to 65535/],
  ["tcp:a:http",                 7, /saw "http"/],
  ["tcp:a:80,,443",             10, /saw ""/],
  ["tcp:a:80,90-80",            10, /write 80-90/],
  ["tcp:a:80,*",                10, /saw "\*"/],
  ["tcp:a:1-2-3",                7, /saw "1-2-3"/],
  ["tcp:a:-1",                   7, /saw "-1"/],
  ["tcp:fd00::1:80",             5, /brackets.*\[fd00::1\]:443/],
  ["tcp:a:80:90",                5, /more than one colon/],
  ["tcp:[fd00::1:80",            5, /without "\]"/],
  ["tcp:[fd00::1]",             14, /no ports/],
  ["tcp:[fd00::1]80",           14, /no ports/],
  ["tcp:[10.0.0.1]:80",          5, /IPv6 address in the brackets/],
  ["tcp:[fe80::1%eth0]:80",      6, /without a zone/],
  ["tcp:[fd00::x]:80",           6, /wanted an IP address/],
  ["tcp:[fd00::/129]:80",        6, /\/0 to \/128/],
  ["tcp:[::ffff:10.0.0.0/104]:80", 6, /IPv4 written as IPv4/],
  ["tcp:[::]:80",                6, /::\/0 for every address, or the loopback/],
  ["tcp:0.0.0.0:80",             5, /0\.0\.0\.0\/0 for every address/],
  ["tcp:10.0.0.0/33:80",         5, /\/0 to \/32/],
  ["tcp:10.0.0.0/:80",           5, /\/0 to \/32/],
  ["tcp:10.0.0.7/8:80",          5, /10\.0\.0\.0\/8 for the network, or 10\.0\.0\.7/],
  ["tcp:10.0.0.300:80",          5, /wanted an IP address/],
  ["tcp:010.0.0.1:80",           5, /wanted an IP address/],
  ["tcp:127.1:80",               5, /wanted an IP address/],
  ["tcp:10.0.*:80",              5, /10\.0\.0\.0\/16/],
  ["tcp:**:80",                  5, /\* for every host/],
  ["tcp:0x7f.0x1:80",            5, /ends in a number/],
  ["tcp:a.0x:80",                5, /ends in a number/],
  ["tcp:a/b:80",                 5, /wanted an IP address/],
  ["tcp:.a.b:80",                5, /"\*\.name"/],
  ["tcp:a..b:80",                6, /empty label/],
  ["tcp:a b:80",                 6, /saw " ", wanted letters/],
  ["tcp:a@b:80",                 6, /saw "@"/],
  ["tcp:a\u0000b:80",            6, /wanted letters/],
  ["tcp:bücher.de:80",           6, /xn--bcher-kva\.de/],
  ["tcp:é*:80",                  5, /xn--9ca/],
  ["unix:",                      6, /absolute path/],
  ["unix:run/a",                 6, /absolute path/],
  ["unix:/",                     6, /absolute path/],
  ["unix:./a",                   6, /absolute path/],
  ["unix:@",                     6, /absolute path/],
  ["unix:/run/../etc/s",        10, /where it leads/],
  ["unix:/run/./s",             10, /where it leads/],
  ["unix:/run//s",              10, /where it leads/],
  ["unix:/run/s/",              12, /where it leads/],
  ["unix:/run/s/..",            12, /where it leads/],
  ["unix:/run/s\u0000/x",       12, /where it leads/],
  ["unix:*/x/../y",              9, /where it leads/],
];

Deno.test("what is no rule is refused with its column and a remedy", () => {
  for (const [text, column, says] of REFUSED) {
    const error = assertThrows(() => parseRule(text), RuleError, "", text);
    assertEquals(error.column, column, text);
    assertEquals(says.test(error.message), true, error.message);
    assertEquals(error.message.includes(`column ${column}: `), true);
  }
});

Deno.test("an overlong rule is refused, and not repeated whole", () => {
  const long = `tcp:${"a".repeat(RULE_LENGTH_MAX)}:80`;
  const error = assertThrows(() => parseRule(long), RuleError);
  assertEquals(error.column, RULE_LENGTH_MAX + 1);
  assertEquals(error.message.length < 250, true);
  const longest = `tcp:${"a".repeat(RULE_LENGTH_MAX - 7)}:80`;
  assertEquals(parseRule(longest).text, longest);
});

Deno.test("any text is a rule or a RuleError whose column lies in it", async () => {
  const pieces = [
    ...["tcp", "udp", "unix", "*", ":", "[", "]", "/", ".", "..", ",", "-"],
    ...["10.0.0.0", "::1", "8", "443", "a", "%", "é", " ", "\u0000", "@"],
  ];
  await forAll(3_000, (random) => {
    let text = "";
    for (let left = random.below(9); left > 0; left--) {
      text += random.pick(pieces);
    }
    try {
      assertEquals(parseRule(text).text, text.trim());
    } catch (error) {
      if (!(error instanceof RuleError)) throw error;
      const inside = error.column >= 1 &&
        error.column <= text.trim().length + 1;
      assertEquals(inside, true, `${JSON.stringify(text)} ${error.message}`);
    }
  });
});
