import { assert, assertEquals, assertRejects } from "@std/assert";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import { Listener } from "../../tests/support/peers/sockets.ts";
import { dialTarget, type TargetDialOptions } from "./dial.ts";
import { DialGate } from "../../policy/dial_gate.ts";
import { isRefusalByRule } from "../../policy/refusal.ts";
import { parseRule } from "../../policy/rule.ts";
import {
  type LabelledRule,
  type RuleDecision,
  RuleSet,
} from "../../policy/rule_set.ts";

// The gate is tried through the dial it stands in, so that what is dialed is
// seen and not assumed.

function rules(allow: readonly string[], deny: readonly string[] = []) {
  const labelled = (flag: string) => (text: string): LabelledRule => ({
    rule: parseRule(text),
    label: `${flag} ${text}`,
  });
  return new RuleSet({
    allow: allow.map(labelled("--allow")),
    deny: deny.map(labelled("--deny")),
  });
}

/** A resolver with one answer after the other, and what it was asked. */
function resolving(...answers: readonly (readonly string[])[]) {
  const asked: string[] = [];
  const left = [...answers];
  const lookup = (host: string) => {
    asked.push(host);
    return Promise.resolve(left.shift()!);
  };
  return { asked, lookup };
}

/** Dials what must be refused. */
async function refused(target: DialTarget, options: TargetDialOptions) {
  const decisions: RuleDecision[] = [];
  const onDecision = (decision: RuleDecision) => void decisions.push(decision);
  const error = await assertRejects(
    () => dialTarget(target, { ...options, onDecision }),
    DialError,
  );
  assertEquals(error.reason, "refused", error.message);
  assert(isRefusalByRule(error.message), error.message);
  assertEquals(decisions.map(({ isAllowed }) => isAllowed), [false]);
  return error.message;
}

/** Dials what must connect. @returns By which rule. */
async function dialed(target: DialTarget, options: TargetDialOptions) {
  const decisions: RuleDecision[] = [];
  const onDecision = (decision: RuleDecision) => void decisions.push(decision);
  const conduit = await dialTarget(target, { ...options, onDecision });
  const received = new Listener(conduit);
  conduit.reset("seen enough");
  await received.closed();
  assertEquals(decisions.map(({ isAllowed }) => isAllowed), [true]);
  return decisions[0]!.rule;
}

const tcp = (address: string): DialTarget => ({ protocol: "tcp", address });

Deno.test("a denied address is refused with the rule that denies it", async () => {
  const set = rules(["*:*:*"], ["tcp:127.0.0.0/8:1-1023"]);
  assertEquals(
    await refused(tcp("127.0.0.1:22"), { rules: set }),
    "Cannot dial tcp 127.0.0.1:22: refused by the agent's rule " +
      "--deny tcp:127.0.0.0/8:1-1023",
  );
  assertEquals(
    await refused(tcp("10.0.0.1:22"), { rules: rules(["tcp:*:80"]) }),
    "Cannot dial tcp 10.0.0.1:22: refused, no rule of the agent allows it; " +
      "add an --allow rule for it there",
  );
});

Deno.test("a name is refused by one of its addresses, which the refusal names", async () => {
  const { asked, lookup } = resolving(["127.0.0.1"]);
  const set = rules(["tcp:*.internal:*"], ["tcp:127.0.0.0/8:*"]);
  assertEquals(
    await refused(tcp("a.internal:80"), { rules: set, resolver: { lookup } }),
    "Cannot dial tcp a.internal:80 (127.0.0.1): refused by the agent's rule " +
      "--deny tcp:127.0.0.0/8:*",
  );
  assertEquals(asked, ["a.internal"]);
});

Deno.test("a name that cannot be allowed is not looked up", async () => {
  const { asked, lookup } = resolving();
  const resolver = { lookup };
  const set = rules(["tcp:*.internal:*", "tcp:10.0.0.0/8:443"]);
  await refused(tcp("secret.attacker.example:80"), { rules: set, resolver });
  const denied = rules(["*:*:*"], ["*:*.attacker.example:*"]);
  await refused(tcp("x.attacker.example:80"), { rules: denied, resolver });
  assertEquals(asked, []);
});

/** Somebody has connected, and may have gone again by now. */
async function came(accepted: Promise<Deno.Conn>): Promise<void> {
  try {
    (await accepted).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotConnected)) throw error;
  }
}

Deno.test("what is dialed is what was evaluated, not a second answer", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const accepted = listener.accept();
  // Whoever asks twice is sent elsewhere: that is DNS rebinding.
  const { asked, lookup } = resolving(["127.0.0.1"], ["127.0.0.9"]);
  const set = rules([`tcp:127.0.0.1:${port}`]);
  const rule = await dialed(tcp(`a.example:${port}`), {
    rules: set,
    resolver: { lookup },
  });
  assertEquals(rule, `--allow tcp:127.0.0.1:${port}`);
  assertEquals(asked, ["a.example"]);
  await came(accepted);
});

Deno.test("of a name's addresses only those are dialed that rules allow", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  using other = Deno.listen({ hostname: "127.0.0.2", port });
  const accepted = listener.accept();
  const late = other.accept().then(() => "dialed", () => "closed");
  const { lookup } = resolving(["127.0.0.2", "::1", "127.0.0.1"]);
  await dialed(tcp(`a.example:${port}`), {
    rules: rules(["tcp:127.0.0.1:*"]),
    resolver: { lookup },
  });
  await came(accepted);
  other.close();
  assertEquals(await late, "closed");
});

Deno.test("datagrams are evaluated as connections are", async () => {
  const { lookup } = resolving(["127.0.0.1"], ["127.0.0.1"]);
  const target = { protocol: "udp", address: "a.example:53" };
  const set = rules(["udp:*:*"], ["udp:127.0.0.0/8:53"]);
  await refused(target, { rules: set, resolver: { lookup } });
  await refused({ ...target, address: "127.0.0.1:53" }, { rules: set });
  const open = rules(["udp:*:53"]);
  assertEquals(
    await dialed(target, { rules: open, resolver: { lookup } }),
    "--allow udp:*:53",
  );
});

Deno.test("an address in disguise is evaluated as what it reaches", async () => {
  const set = rules(["*:*:*"], ["tcp:127.0.0.0/8:*", "tcp:[::1]:*"]);
  for (
    const host of [
      ...[
        "0.0.0.0",
        "[::]",
        "[::ffff:127.0.0.1]",
        "",
        "localhost",
        "LOCALHOST",
      ],
    ]
  ) await refused(tcp(`${host}:9`), { rules: set });
  // Names to some, addresses to others: to us nothing at all.
  for (const host of ["127.1", "0x7f000001", "2130706433"]) {
    const error = await assertRejects(
      () => dialTarget(tcp(`${host}:9`), { rules: set }),
      DialError,
    );
    assertEquals(error.message, `dial tcp: lookup ${host}: no such host`);
    const resolver = resolving(["127.0.0.1"]);
    await refused(tcp(`${host}:9`), { rules: set, resolver });
  }
});

Deno.test("a refusal repeats only the beginning of what peers made long", async () => {
  const message = await refused(tcp(`${"a".repeat(100_000)}:80`), {
    rules: rules(["tcp:10.0.0.0/8:80", "tcp:*a:81"]),
    resolver: resolving([]),
  });
  assert(message.length < 400, `${message.length}`);
});

/** A folder with `app/app.sock`, `app/link` to `other/other.sock`. */
async function sockets() {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "p-" }));
  await Deno.mkdir(`${root}/app`);
  await Deno.mkdir(`${root}/other`);
  const listen = (path: string) => {
    const listener = Deno.listen({ transport: "unix", path });
    (async () => {
      for await (const conn of listener) conn.close();
    })();
    return listener;
  };
  const open = [
    listen(`${root}/app/app.sock`),
    listen(`${root}/other/other.sock`),
  ];
  await Deno.symlink(`${root}/other/other.sock`, `${root}/app/link`);
  await Deno.symlink(`${root}/app`, `${root}/alias`);
  const unix = (path: string) => ({
    protocol: "unix",
    address: `${root}/${path}`,
  });
  return {
    root,
    unix,
    async [Symbol.asyncDispose]() {
      for (const listener of open) listener.close();
      await Deno.remove(root, { recursive: true });
    },
  };
}

Deno.test("a unix socket is evaluated by its path and by where links lead", async () => {
  await using s = await sockets();
  const set = rules([`unix:${s.root}/app/*`]);
  assertEquals(
    await dialed(s.unix("app/app.sock"), { rules: set }),
    `--allow unix:${s.root}/app/*`,
  );
  const message = await refused(s.unix("app/link"), { rules: set });
  assert(message.includes(`(which leads to ${s.root}/other/other.sock)`));
  // A folder that is a link: the path behind it is allowed, this one is not.
  await refused(s.unix("alias/app.sock"), { rules: set });
  const both = rules([`unix:${s.root}/app/*`, `unix:${s.root}/alias/*`]);
  await dialed(s.unix("alias/app.sock"), { rules: both });
  for (const path of ["app/../other/other.sock", "app//app.sock"]) {
    await refused(s.unix(path), { rules: rules(["unix:*"]) });
  }
});

Deno.test("what is dialed is the path behind links, not one that can change", async () => {
  const target = { protocol: "unix", address: "/run/app/link" };
  const gate = new DialGate(target, { rules: rules(["unix:/run/app/*"]) });
  const realPath = () => Promise.resolve("/run/app/behind");
  assertEquals(
    await gate.admitPath(target.address, realPath),
    "/run/app/behind",
  );
});

Deno.test("--allow-unix needs no rule, and a deny rule overrules it", async () => {
  await using s = await sockets();
  const link = s.unix("app/link");
  const allowUnix = [link.address];
  assertEquals(await dialed(link, { allowUnix }), "--allow-unix");
  const others = rules(["tcp:*:*"]);
  assertEquals(
    await dialed(link, { allowUnix, rules: others }),
    "--allow-unix",
  );
  for (const denied of ["app/link", "other/*"]) {
    const set = rules(["unix:*"], [`unix:${s.root}/${denied}`]);
    await refused(link, { allowUnix, rules: set });
  }
});

Deno.test("without rules tcp and udp go anywhere and unix nowhere", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const accepted = listener.accept();
  assertEquals(await dialed(tcp(`127.0.0.1:${port}`), {}), "none were given");
  await came(accepted);
  await refused({ protocol: "unix", address: "/run/app.sock" }, {});
});
