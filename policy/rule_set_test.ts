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

Deno.test("deny comes first, then allow, and the rest is refused", () => {
  const set = rules(
    "tcp:10.0.0.0/8:*",
    "!tcp:10.0.0.0/24:*",
    "tcp:10.1.0.0/16:*",
  );
  assertEquals(evaluated(set, "tcp 10.1.0.1:80"), "+tcp:10.0.0.0/8:*");
  assertEquals(evaluated(set, "tcp 10.0.0.1:80"), "-tcp:10.0.0.0/24:*");
  assertEquals(evaluated(set, "tcp 11.0.0.1:80"), "-");
  assertEquals(evaluated(set, "udp 10.1.0.1:80"), "-");
  assertEquals(evaluated(rules(), "tcp 10.1.0.1:80"), "-");
});

Deno.test("every spelling of an address is that address", () => {
  const set = rules("*:*:*", "!tcp:127.0.0.0/8:*", "!tcp:[::1]:*");
  for (
    const host of [
      ...["127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[127.0.0.1]"],
      ...["0.0.0.0", "[::ffff:0.0.0.0]", "127.255.0.3", "127.0.0.1%lo"],
    ]
  ) {
    assertEquals(evaluated(set, `tcp ${host}:80`), "-tcp:127.0.0.0/8:*", host);
  }
  for (
    const host of [
      "[::1]",
      "[0:0:0:0:0:0:0:1]",
      "[::]",
      "[::1%lo]",
      "[0::0.0.0.1]",
    ]
  ) {
    assertEquals(evaluated(set, `tcp ${host}:80`), "-tcp:[::1]:*", host);
  }
  assertEquals(
    evaluated(set, "tcp :80"),
    "-tcp:127.0.0.0/8:* -tcp:[::1]:*",
    "no host is this machine",
  );
});

Deno.test("names are compared without case and without the dot at the end", () => {
  const set = rules("tcp:db.Example.com.:5432");
  for (const name of ["db.example.com", "DB.EXAMPLE.COM", "db.example.com."]) {
    assertEquals(
      evaluated(set, `tcp ${name}:5432`),
      "+tcp:db.Example.com.:5432",
    );
  }
  for (
    const name of ["db.example.com..", "x.db.example.com", "db.example.co"]
  ) {
    assertEquals(evaluated(set, `tcp ${name}:5432`), "unasked -", name);
  }
});

Deno.test("a name in other letters is compared as resolvers ask for it", () => {
  const set = rules("tcp:xn--bcher-kva.de:80", "!tcp:example.com:*");
  assertEquals(evaluated(set, "tcp BÜCHER.de:80"), "+tcp:xn--bcher-kva.de:80");
  assertEquals(
    evaluated(set, "tcp ｅxample.com:80"),
    "unasked -tcp:example.com:*",
  );
});

Deno.test("what only looks like a name fits no pattern", () => {
  const set = rules("tcp:*e1:*", "tcp:*.example:*", "tcp:*x*:*");
  for (
    const host of [
      ...["127.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001"],
      ...["a b.example", "a/.example", "x".repeat(300)],
    ]
  ) {
    assertEquals(evaluated(set, `tcp ${host}:80`), "unasked -", host);
  }
  assertEquals(evaluated(set, "tcp node1:80"), "+tcp:*e1:*");
});

Deno.test("a look-alike's address is evaluated like any other", () => {
  const set = rules("*:*:*", "!tcp:127.0.0.0/8:*");
  assertEquals(
    evaluated(set, "tcp 127.1:80", "127.0.0.1"),
    "-tcp:127.0.0.0/8:*",
  );
});

Deno.test("a pattern for names never fits an address", () => {
  const set = rules("tcp:*a*:*", "tcp:*-1:*", "!tcp:1*b:*");
  assertEquals(evaluated(set, "tcp 127.0.0.1:80"), "-");
  assertEquals(evaluated(set, "tcp [fd00::a]:80"), "-");
});

Deno.test("a name that a rule allows may have any address that none denies", () => {
  const set = rules("tcp:*.internal:*", "!tcp:169.254.0.0/16:*");
  assertEquals(
    evaluated(set, "tcp a.internal:80", "10.0.0.1"),
    "+tcp:*.internal:*",
  );
  assertEquals(
    evaluated(set, "tcp a.internal:80", "169.254.169.254"),
    "-tcp:169.254.0.0/16:*",
  );
});

Deno.test("a name that no rule allows needs addresses that one allows", () => {
  const set = rules("tcp:10.0.0.0/8:443");
  assertEquals(
    evaluated(set, "tcp a.example:443", "10.0.0.1"),
    "+tcp:10.0.0.0/8:443",
  );
  assertEquals(evaluated(set, "tcp a.example:443", "11.0.0.1"), "-");
  // On this port no address could be allowed: nobody is asked.
  assertEquals(evaluated(set, "tcp a.example:80"), "unasked -");
});

Deno.test("a denied name is refused before it is looked up", () => {
  const set = rules("*:*:*", "!*:*.evil:*");
  assertEquals(evaluated(set, "udp x.evil:53"), "unasked -*:*.evil:*");
});

Deno.test("ports are compared as ranges with both ends", () => {
  const set = rules("tcp:*:80,8000-8100");
  const ports = [79, 80, 81, 7999, 8000, 8050, 8100, 8101, 0];
  const allowed = ports.filter((port) =>
    evaluated(set, `tcp 10.0.0.1:${port}`).startsWith("+")
  );
  assertEquals(allowed, [80, 8000, 8050, 8100]);
});

Deno.test("* is tcp and udp and never a unix socket", () => {
  const set = rules("*:*:*");
  assertEquals(evaluated(set, "unix /run/app.sock"), "-");
  assertEquals(evaluated(rules("unix:*"), "tcp 10.0.0.1:80"), "-");
});

Deno.test("unix paths fit as they are written, and only plain ones do", () => {
  const set = rules("unix:/run/app/*", "!unix:*.key", "unix:@tunnel*");
  assertEquals(evaluated(set, "unix /run/app/a.sock"), "+unix:/run/app/*");
  assertEquals(evaluated(set, "unix /run/app/b/a.sock"), "+unix:/run/app/*");
  assertEquals(evaluated(set, "unix /run/app/a.key"), "-unix:*.key");
  assertEquals(evaluated(set, "unix @tunnel-1"), "+unix:@tunnel*");
  for (
    const path of [
      ...[
        "/run/app/../docker.sock",
        "/run/app/./x",
        "/run/app//x",
        "/run/app/",
      ],
      ...["/run/app/x/..", "/run/app/x\u0000", "run/app/x", "", "/RUN/app/x"],
    ]
  ) {
    assertEquals(evaluated(set, `unix ${path}`), "-", path);
  }
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
