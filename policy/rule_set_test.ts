import { assertEquals } from "@std/assert";
import { parseRule } from "./rule.ts";
import { type LabelledRule, RuleSet } from "./rule_set.ts";
import { effectiveAddress, subjectOf } from "./subject.ts";

const labelled = (text: string): LabelledRule => ({
  rule: parseRule(text),
  label: text,
});

/** `tcp:a,!tcp:b` allows the one and denies the other. */
function rules(...texts: readonly string[]): RuleSet {
  const deny = texts.filter((text) => text.startsWith("!"));
  const allow = texts.filter((text) => !text.startsWith("!"));
  return new RuleSet({
    allow: allow.map(labelled),
    deny: deny.map((text) => labelled(text.slice(1))),
  });
}

/** What an agent makes of `tcp name:port` whose name has `address`. */
function evaluated(set: RuleSet, target: string, address?: string): string {
  const blank = target.indexOf(" ");
  const subject = subjectOf({
    protocol: target.slice(0, blank),
    address: target.slice(blank + 1),
  });
  if (subject.kind === "path") return words(set.evaluatePath(subject.path));
  if (subject.kind !== "endpoint") return "unreadable";
  const { host } = subject;
  if (host.kind === "addresses") {
    return host.addresses.map((one) => words(set.evaluateAddress(subject, one)))
      .join(" ");
  }
  const before = set.evaluateName(subject);
  if (before?.isAllowed === false) return `unasked ${words(before)}`;
  const found = effectiveAddress(address ?? "192.0.2.1")!;
  return words(set.evaluateAddress(subject, found, before));
}

function words(
  { isAllowed, rule }: { readonly isAllowed: boolean; readonly rule: string },
): string {
  return isAllowed ? `+${rule}` : `-${rule}`;
}

/** Rules, and what becomes of targets: by one, or of many that are alike. */
function decides(
  name: string,
  texts: readonly string[],
  expected: Readonly<Record<string, string | readonly string[]>>,
): void {
  Deno.test(name, () => {
    const set = rules(...texts);
    for (const [target, decision] of Object.entries(expected)) {
      const [alike, wanted] = typeof decision === "string"
        ? [[target], decision]
        : [decision, target];
      for (const each of alike) {
        const [asked, address] = each.split(" at ");
        assertEquals(evaluated(set, asked!, address), wanted, each);
      }
    }
  });
}

/** Targets of TCP at a port. */
const tcp = (port: number, ...hosts: readonly string[]) =>
  hosts.map((host) => `tcp ${host}:${port}`);

decides("deny comes first, then allow, and the rest is refused", [
  ...["tcp:10.0.0.0/8:*", "!tcp:10.0.0.0/24:*", "tcp:10.1.0.0/16:*"],
], {
  "tcp 10.1.0.1:80": "+tcp:10.0.0.0/8:*",
  "tcp 10.0.0.1:80": "-tcp:10.0.0.0/24:*",
  "tcp 11.0.0.1:80": "-",
  "udp 10.1.0.1:80": "-",
});

decides("without a rule nothing is allowed", [], { "tcp 10.1.0.1:80": "-" });

decides("every spelling of an address is that address", [
  ...["*:*:*", "!tcp:127.0.0.0/8:*", "!tcp:[::1]:*"],
], {
  "-tcp:127.0.0.0/8:*": tcp(
    80,
    ...["127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[127.0.0.1]"],
    ...["0.0.0.0", "[::ffff:0.0.0.0]", "127.255.0.3", "127.0.0.1%lo"],
  ),
  "-tcp:[::1]:*": tcp(
    80,
    ...["[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::1%lo]", "[0::0.0.0.1]"],
  ),
  // No host is this machine.
  "tcp :80": "-tcp:127.0.0.0/8:* -tcp:[::1]:*",
});

decides(
  "names are compared without case and without the dot at the end",
  ["tcp:db.Example.com.:5432"],
  {
    "+tcp:db.Example.com.:5432": tcp(
      5432,
      ...["db.example.com", "DB.EXAMPLE.COM", "db.example.com."],
    ),
    "unasked -": tcp(
      5432,
      ...["db.example.com..", "x.db.example.com", "db.example.co"],
    ),
  },
);

decides("a name in other letters is compared as resolvers ask for it", [
  ...["tcp:xn--bcher-kva.de:80", "!tcp:example.com:*"],
], {
  "tcp BÜCHER.de:80": "+tcp:xn--bcher-kva.de:80",
  "tcp ｅxample.com:80": "unasked -tcp:example.com:*",
});

decides("what only looks like a name fits no pattern", [
  ...["tcp:*e1:*", "tcp:*.example:*", "tcp:*x*:*"],
], {
  "unasked -": tcp(
    80,
    ...["127.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001"],
    ...["a b.example", "a/.example", "x".repeat(300)],
  ),
  "tcp node1:80": "+tcp:*e1:*",
});

decides("a look-alike's address is evaluated like any other", [
  ...["*:*:*", "!tcp:127.0.0.0/8:*"],
], { "tcp 127.1:80 at 127.0.0.1": "-tcp:127.0.0.0/8:*" });

decides("a pattern for names never fits an address", [
  ...["tcp:*a*:*", "tcp:*-1:*", "!tcp:1*b:*"],
], { "tcp 127.0.0.1:80": "-", "tcp [fd00::a]:80": "-" });

decides("a name that a rule allows may have any address that none denies", [
  ...["tcp:*.internal:*", "!tcp:169.254.0.0/16:*"],
], {
  "tcp a.internal:80 at 10.0.0.1": "+tcp:*.internal:*",
  "tcp a.internal:80 at 169.254.169.254": "-tcp:169.254.0.0/16:*",
});

decides("a name that no rule allows needs addresses that one allows", [
  "tcp:10.0.0.0/8:443",
], {
  "tcp a.example:443 at 10.0.0.1": "+tcp:10.0.0.0/8:443",
  "tcp a.example:443 at 11.0.0.1": "-",
  // On this port no address could be allowed: nobody is asked.
  "tcp a.example:80": "unasked -",
});

decides("a denied name is refused before it is looked up", [
  ...["*:*:*", "!*:*.evil:*"],
], { "udp x.evil:53": "unasked -*:*.evil:*" });

Deno.test("ports are compared as ranges with both ends", () => {
  const set = rules("tcp:*:80,8000-8100");
  const ports = [79, 80, 81, 7999, 8000, 8050, 8100, 8101, 0];
  const allowed = ports.filter((port) =>
    evaluated(set, `tcp 10.0.0.1:${port}`).startsWith("+")
  );
  assertEquals(allowed, [80, 8000, 8050, 8100]);
});

decides("* is tcp and udp and never a unix socket", ["*:*:*"], {
  "unix /run/app.sock": "-",
});

decides("a rule about unix sockets is about nothing else", ["unix:*"], {
  "tcp 10.0.0.1:80": "-",
});

decides("unix paths fit as they are written, and only plain ones do", [
  ...["unix:/run/app/*", "!unix:*.key", "unix:@tunnel*"],
], {
  "unix /run/app/a.sock": "+unix:/run/app/*",
  "unix /run/app/b/a.sock": "+unix:/run/app/*",
  "unix /run/app/a.key": "-unix:*.key",
  "unix @tunnel-1": "+unix:@tunnel*",
  "-": [
    ...["/run/app/../docker.sock", "/run/app/./x", "/run/app//x", "/run/app/"],
    ...["/run/app/x/..", "/run/app/x\u0000", "run/app/x", "", "/RUN/app/x"],
  ].map((path) => `unix ${path}`),
});

Deno.test("where links lead is not known: no path is allowed by a rule about all beside a deny rule", () => {
  const server = (set: RuleSet, path: string) =>
    words(set.evaluateUnresolved({ kind: "path", path }));
  const broad = rules("unix:*", "!unix:/opt/st/*");
  const roots = ["/proc/self/cwd/st/a", "/proc/9/cwd/a", "/dev/fd/3"];
  for (const path of ["/opt/st/a", "/opt/link/a", "/tmp/a", ...roots]) {
    assertEquals(server(broad, path), "-unix:/opt/st/*", path);
    assertEquals(server(rules("unix:/*", "!unix:/opt/st/*"), path).at(0), "-");
    // Without a deny rule there is nothing to talk around.
    assertEquals(server(rules("unix:*"), path), "+unix:*", path);
  }
  // Nothing leads to an abstract name.
  assertEquals(server(broad, "@tunnel"), "+unix:*");
  const folder = rules("unix:/opt/app/*", "unix:/proc/*", "!unix:/opt/st/*");
  assertEquals(server(folder, "/opt/app/a"), "+unix:/opt/app/*");
  for (const path of roots) assertEquals(server(folder, path).at(0), "-", path);
  const exact = rules("unix:*", "unix:/proc/self/x", "!unix:/opt/st/*");
  assertEquals(server(exact, "/proc/self/x"), "+unix:*");
  assertEquals(server(exact, "/proc/self/y"), "-unix:/opt/st/*");
});

Deno.test("/run and /var/run are one folder where links cannot be followed", () => {
  const decision = (path: string) =>
    words(
      rules(
        "unix:/var/*",
        "unix:/run/*",
        "!unix:/run/docker.sock",
        "!unix:/var/run/x",
      )
        .evaluateUnresolved({ kind: "path", path }),
    );
  assertEquals(decision("/var/run/docker.sock"), "-unix:/run/docker.sock");
  assertEquals(decision("/run/x"), "-unix:/var/run/x");
  assertEquals(decision("/run/y"), "+unix:/run/*");
});

Deno.test("targets that no rule can be about are refused", () => {
  const set = rules("*:*:*", "unix:*");
  const decision = (protocol: string, address: string) => {
    const { isAllowed, note } = set.evaluateUnresolved(
      subjectOf({ protocol, address }),
    );
    return [isAllowed, note];
  };
  const HOST_PORT = [false, "it is not HOST:PORT"];
  for (const address of ["a", "a:spdy", "::1:80", "[::1]", "a:99999", ""]) {
    assertEquals(decision("tcp", address), HOST_PORT, address);
  }
  for (const protocol of ["tcp4", "TCP", "ip4:icmp", "unixgram", ""]) {
    assertEquals(decision(protocol, "a:80"), [
      false,
      "its protocol is none of tcp, udp and unix",
    ]);
  }
});

Deno.test("a port by its name is the port that rules are about", () => {
  const set = rules("tcp:*:*", "!tcp:*:80");
  const isAllowed = (address: string) =>
    set.evaluateUnresolved(subjectOf({ protocol: "tcp", address })).isAllowed;
  assertEquals(isAllowed("a.example:http"), false);
  assertEquals(isAllowed("a.example:https"), true);
});

Deno.test("where names are not resolved, what an address rule may deny is refused", () => {
  const set = rules("*:*:*", "!tcp:169.254.0.0/16:*", "tcp:*.example:443");
  const evaluate = (address: string, protocol = "tcp") =>
    words(set.evaluateUnresolved(subjectOf({ protocol, address })));
  assertEquals(evaluate("metadata.internal:80"), "-tcp:169.254.0.0/16:*");
  assertEquals(evaluate("127.1:80"), "-tcp:169.254.0.0/16:*");
  assertEquals(evaluate("169.254.169.254:80"), "-tcp:169.254.0.0/16:*");
  assertEquals(evaluate("10.0.0.1:80"), "+*:*:*");
  assertEquals(evaluate("a.example:443"), "+*:*:*", "it is allowed by name");
  assertEquals(evaluate("a.example:80"), "-tcp:169.254.0.0/16:*");
  assertEquals(evaluate("metadata.internal:80", "udp"), "+*:*:*");
  // Both families of loopback must be allowed where no host is named.
  const v4 = rules("tcp:127.0.0.0/8:*");
  const { isAllowed } = v4.evaluateUnresolved(
    subjectOf({ protocol: "tcp", address: ":80" }),
  );
  assertEquals(isAllowed, false);
});

Deno.test("where names are not resolved, the refusal says that address rules allow none", () => {
  const decision = rules("tcp:10.0.0.0/8:*").evaluateUnresolved(
    subjectOf({ protocol: "tcp", address: "a.example:80" }),
  );
  assertEquals(decision.isAllowed, false);
  assertEquals(decision.note, "rules about addresses allow no names here");
});
