import { assertEquals, assertMatch } from "@std/assert";
import type {
  DiscoveryMode,
  DiscoveryRequest,
} from "../../proto/xds/discovery.ts";
import { type ResourceKind, TYPE_URLS } from "../../proto/xds/resource.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ABSENT_AFTER_MS, AdsClient } from "./ads_client.ts";
import { ANNOUNCED_MAX, type Need, RefusedResource } from "./held_resources.ts";
import { PORTION_NAMES_MAX } from "./subscription.ts";

const MODES: readonly DiscoveryMode[] = ["sotw", "delta"];

/** A client, all that it says and all that it tells, as short texts. */
class Rig {
  readonly timers = new FakeTimers();
  readonly said: string[] = [];
  readonly reported: string[] = [];
  readonly client: AdsClient<string>;

  constructor(
    readonly mode: DiscoveryMode,
    more: {
      readonly heldMax?: number;
      readonly heldBytesMax?: number;
    } = {},
  ) {
    const { heldMax, heldBytesMax } = more;
    this.client = new AdsClient<string>({
      mode,
      node: {
        id: "n1",
        cluster: "",
        metadata: {},
        locality: { region: "", zone: "", subZone: "" },
        userAgentName: "test",
        userAgentVersion: "1",
        clientFeatures: [],
      },
      read: (_kind, { value }) => {
        const content = new TextDecoder().decode(value);
        if (content === "bad") throw new RefusedResource("it is bad");
        return { content, needs: needsOf(content) };
      },
      timers: this.timers,
      onChanged: (changes) => {
        for (const { kind, name, held } of changes) {
          this.reported.push(`${kind} ${name} ${held?.content ?? "-"}`);
        }
      },
      ...heldMax === undefined ? {} : { heldMax },
      ...heldBytesMax === undefined ? {} : { heldBytesMax },
    });
  }

  /** Opens a stream. @returns What is said at once. */
  open(): string[] {
    this.client.opened((request) => this.said.push(shown(request)));
    return this.take();
  }

  /** @param resources By name: its content, perhaps `content@version`. */
  answer(
    kind: ResourceKind,
    version: string,
    resources: Readonly<Record<string, string>>,
    removed: readonly string[] = [],
  ): string[] {
    const typeUrl = TYPE_URLS[kind];
    this.client.receive({
      typeUrl,
      version,
      nonce: `n${version}`,
      resources: Object.entries(resources).map(([name, text]) => {
        const [content = "", own = version] = text.split("@");
        return { name, version: own, typeUrl, value: encode(content) };
      }),
      removed,
    });
    return this.take();
  }

  take(): string[] {
    return this.said.splice(0);
  }

  takeReported(): string[] {
    return this.reported.splice(0);
  }
}

/** `needs a b`: the assignments a and b. */
function needsOf(content: string): readonly Need[] {
  const [word, ...names] = content.split(" ");
  if (word !== "needs") return [];
  return names.map((name) => ({ kind: "endpoints", name }));
}

/** `cluster v=1 nonce=n1 [a b] -c NACK: why`, without what is empty. */
function shown(request: DiscoveryRequest): string {
  const [kind] = Object.entries(TYPE_URLS)
    .find(([, url]) => url === request.typeUrl)!;
  const { node, responseNonce, errorDetail } = request;
  return [
    kind,
    ...node === undefined ? [] : [`node=${node.id}`],
    ...request.mode === "sotw"
      ? [`v=${request.versionInfo}`, `[${request.resourceNames.join(" ")}]`]
      : [
        ...request.subscribe.map((name) => `+${name}`),
        ...request.unsubscribe.map((name) => `-${name}`),
        ...[...request.initialVersions].map(([name, v]) => `${name}=${v}`),
      ],
    ...responseNonce === "" ? [] : [`nonce=${responseNonce}`],
    ...errorDetail === undefined
      ? []
      : [`NACK ${errorDetail.code}: ${errorDetail.message}`],
  ].join(" ");
}

const encode = (text: string) => new TextEncoder().encode(text);

Deno.test("sotw: a wildcard and names are asked for, and acknowledged with all names", () => {
  const rig = new Rig("sotw");
  rig.client.want("cluster", true);
  rig.client.want("endpoints", false, ["a", "b"]);
  assertEquals(rig.open(), ["cluster node=n1 v= []", "endpoints v= [a b]"]);
  assertEquals(rig.answer("endpoints", "1", { a: "x" }), [
    "endpoints v=1 [a b] nonce=n1",
  ]);
  rig.client.want("endpoints", false, ["b", "c"]);
  assertEquals(rig.take(), ["endpoints v=1 [b c] nonce=n1"]);
  rig.client.want("cluster", true, ["special"]);
  assertEquals(rig.take(), ["cluster v= [* special]"]);
  rig.client.want("cluster", true);
  assertEquals(rig.take(), ["cluster v= [*]"]);
  rig.client.want("endpoints", false);
  assertEquals(rig.take(), ["endpoints v=1 [] nonce=n1"]);
  rig.client.want("endpoints", false);
  assertEquals(rig.take(), []);
});

Deno.test("delta: requests say what differs, and answers nothing but the nonce", () => {
  const rig = new Rig("delta");
  rig.client.want("cluster", true);
  rig.client.want("endpoints", false, ["a", "b"]);
  assertEquals(rig.open(), ["cluster node=n1", "endpoints +a +b"]);
  assertEquals(rig.answer("endpoints", "1", { a: "x" }), [
    "endpoints nonce=n1",
  ]);
  rig.client.want("endpoints", false, ["b", "c"]);
  assertEquals(rig.take(), ["endpoints +c -a"]);
  rig.client.want("cluster", true, ["special"]);
  assertEquals(rig.take(), ["cluster +special"]);
  rig.client.want("cluster", false, ["special"]);
  assertEquals(rig.take(), ["cluster -*"]);
});

Deno.test("a name is awaited, and known not to exist after 15 s or a word of the server", () => {
  for (const mode of MODES) {
    const rig = new Rig(mode);
    rig.client.want("endpoints", false, ["a", "b"]);
    rig.open();
    rig.answer("endpoints", "1", { a: "x" });
    assertEquals(rig.takeReported(), ["endpoints a x"]);
    rig.timers.advance(ABSENT_AFTER_MS - 1);
    assertEquals([rig.client.isSynced, rig.takeReported()], [false, []]);
    rig.timers.advance(1);
    assertEquals(rig.takeReported(), ["endpoints b -"]);
    assertEquals([...rig.client.absent("endpoints")], ["b"]);
    rig.answer("endpoints", "2", { b: "y" });
    assertEquals(rig.takeReported(), ["endpoints b y"]);
    assertEquals([...rig.client.absent("endpoints")], []);
  }
  const rig = new Rig("delta");
  rig.client.want("endpoints", false, ["a"]);
  rig.open();
  rig.answer("endpoints", "1", {}, ["a"]);
  assertEquals(rig.takeReported(), ["endpoints a -"]);
  assertEquals(rig.client.isSynced, true);
});

Deno.test("nothing is given up while there is no stream", () => {
  for (const mode of MODES) {
    const rig = new Rig(mode);
    rig.client.want("endpoints", false, ["a"]);
    rig.timers.advance(2 * ABSENT_AFTER_MS);
    rig.open();
    rig.timers.advance(ABSENT_AFTER_MS - 1);
    rig.client.closed();
    rig.timers.advance(ABSENT_AFTER_MS);
    assertEquals(rig.takeReported(), []);
    rig.open();
    rig.timers.advance(ABSENT_AFTER_MS - 1);
    assertEquals(rig.takeReported(), []);
    rig.timers.advance(1);
    assertEquals(rig.takeReported(), ["endpoints a -"]);
  }
});

Deno.test("what a cluster needs is asked for with it, and forgotten with it", () => {
  for (const mode of MODES) {
    const rig = new Rig(mode);
    rig.client.want("cluster", true);
    rig.open();
    const first = rig.answer("cluster", "1", {
      one: "needs a b",
      two: "needs b",
    });
    assertEquals(
      first,
      mode === "sotw"
        ? ["cluster v=1 [] nonce=n1", "endpoints v= [a b]"]
        : ["cluster nonce=n1", "endpoints +a +b"],
    );
    rig.answer("endpoints", "2", { a: "x", b: "y" });
    rig.takeReported();
    const second = mode === "sotw"
      ? rig.answer("cluster", "3", { two: "needs b" })
      : rig.answer("cluster", "3", {}, ["one"]);
    assertEquals(rig.takeReported(), ["cluster one -", "endpoints a -"]);
    assertEquals(
      second,
      mode === "sotw"
        ? ["cluster v=3 [] nonce=n3", "endpoints v=2 [b] nonce=n2"]
        : ["cluster nonce=n3", "endpoints -a"],
    );
    const third = rig.answer("cluster", "4", { two: "needs c" });
    assertEquals(rig.takeReported(), ["cluster two needs c", "endpoints b -"]);
    assertMatch(third[1]!, mode === "sotw" ? /\[c\]/ : /\+c -b/);
  }
});

Deno.test("a response that is the whole state takes away what it does not name, others do not", () => {
  const rig = new Rig("sotw");
  rig.client.want("cluster", true);
  rig.client.want("endpoints", false, ["a", "b"]);
  rig.open();
  rig.answer("cluster", "1", { one: "x", two: "y" });
  rig.answer("endpoints", "2", { a: "x", b: "y" });
  rig.takeReported();
  rig.answer("cluster", "3", { two: "y" });
  rig.answer("endpoints", "4", { b: "z" });
  assertEquals(rig.takeReported(), ["cluster one -", "endpoints b z"]);
  rig.answer("cluster", "5", {});
  assertEquals(rig.takeReported(), ["cluster two -"]);
});

Deno.test("one resource that is bad is refused by name, and the others are taken", () => {
  for (const mode of MODES) {
    const rig = new Rig(mode);
    rig.client.want("cluster", true);
    rig.open();
    rig.answer("cluster", "1", { one: "old", two: "old" });
    rig.takeReported();
    const [answer] = rig.answer("cluster", "2", { one: "bad", two: "new" });
    assertEquals(
      answer,
      mode === "sotw"
        ? "cluster v=1 [] nonce=n2 NACK 3: one: it is bad"
        : "cluster nonce=n2 NACK 3: one: it is bad",
    );
    assertEquals(rig.takeReported(), ["cluster two new"]);
    assertEquals(rig.client.held("cluster").get("one")!.content, "old");
    assertEquals(rig.client.status.cluster?.refusal?.message, "one: it is bad");
    rig.answer("cluster", "3", { one: "good", two: "new" });
    assertEquals(rig.takeReported(), ["cluster one good"]);
    assertEquals(rig.client.status.cluster?.refusal, undefined);
  }
});

Deno.test("a name that is there twice, none, another type and too much are refused", () => {
  const rig = new Rig("sotw", { heldMax: 2 });
  rig.client.want("cluster", true);
  rig.open();
  const typeUrl = TYPE_URLS.cluster;
  const of = (name: string, type = typeUrl) => ({
    name,
    version: "1",
    typeUrl: type,
    value: encode(name),
  });
  const resources = [of("a"), of("a"), of(""), of("b", "other"), of("c")];
  rig.client.receive({
    typeUrl,
    version: "1",
    nonce: "n",
    resources: [...resources, of("d")],
    removed: [],
  });
  assertMatch(
    rig.take()[0]!,
    /NACK 3: a: it is there twice; : it has no name; b: its type is other, .*; d: there are 2 resources already$/,
  );
  assertEquals(rig.takeReported(), ["cluster a a", "cluster c c"]);
});

Deno.test("a refusal names twenty resources, and is bounded", () => {
  const rig = new Rig("sotw");
  rig.client.want("cluster", true);
  rig.open();
  const names = Array.from({ length: 30 }, (_, i) => `c${i}`);
  const bad = Object.fromEntries(names.map((name) => [name, "bad"]));
  assertMatch(rig.answer("cluster", "1", bad)[0]!, /c19: .*; and 10 more$/);
  const long = { ["x".repeat(10_000)]: "bad" };
  assertEquals(rig.answer("cluster", "2", long)[0]!.length < 2_100, true);
});

Deno.test("who comes back says what it has", () => {
  const sotw = new Rig("sotw");
  const delta = new Rig("delta");
  for (const rig of [sotw, delta]) {
    rig.client.want("cluster", true);
    rig.open();
    rig.answer("cluster", "1", { one: "needs a@v1", two: "x@v2" });
    rig.answer("endpoints", "2", { a: "y@v3" });
    rig.client.closed();
    rig.takeReported();
  }
  assertEquals(sotw.open(), ["cluster node=n1 v=1 []", "endpoints v=2 [a]"]);
  assertEquals(delta.open(), [
    "cluster node=n1 one=v1 two=v2",
    "endpoints +a a=v3",
  ]);
  assertEquals([sotw.takeReported(), delta.takeReported()], [[], []]);
  delta.answer("cluster", "3", {}, ["one"]);
  assertEquals(delta.takeReported(), ["cluster one -", "endpoints a -"]);
});

Deno.test("a client that has more than it can say receives all, and forgets what it does not receive", () => {
  const rig = new Rig("delta");
  const names = Array.from({ length: ANNOUNCED_MAX + 1 }, (_, i) => `e${i}`);
  rig.client.want("endpoints", false, names);
  const requests = rig.open();
  const lengths = requests.map((request) => request.split("+").length - 1);
  assertEquals(lengths, [PORTION_NAMES_MAX, 1]);
  assertEquals(requests.map((request) => /node=/.test(request)), [true, false]);
  const all = Object.fromEntries(names.map((name) => [name, "x"]));
  rig.answer("endpoints", "1", all);
  rig.client.closed();
  rig.takeReported();
  assertEquals(rig.open().some((request) => request.includes("=1")), false);
  // A server that says nothing yet says nothing by that.
  rig.timers.advance(2 * ABSENT_AFTER_MS);
  assertEquals(rig.takeReported(), []);
  const { e7: _, ...others } = all;
  rig.answer("endpoints", "1", others);
  rig.timers.advance(ABSENT_AFTER_MS - 1);
  assertEquals(rig.takeReported(), []);
  rig.timers.advance(1);
  assertEquals(rig.takeReported(), ["endpoints e7 -"]);
});

Deno.test("what nobody asked for is not taken", () => {
  for (const mode of MODES) {
    const rig = new Rig(mode);
    rig.client.want("endpoints", false, ["a"]);
    rig.open();
    assertEquals(rig.answer("cluster", "1", { one: "x" }), []);
    assertEquals(rig.answer("endpoints", "2", { a: "x", b: "y" }).length, 1);
    assertEquals(rig.takeReported(), ["endpoints a x"]);
  }
});

Deno.test("a response that crosses the end of a subscription is answered", () => {
  const rig = new Rig("sotw");
  rig.client.want("endpoints", false, ["a"]);
  rig.open();
  rig.client.want("endpoints", false);
  rig.take();
  assertEquals(rig.answer("endpoints", "1", { a: "x" }), [
    "endpoints v=1 [] nonce=n1",
  ]);
  assertEquals(rig.takeReported(), []);
});

Deno.test("content that stays is no news, whatever its version", () => {
  for (const mode of MODES) {
    const rig = new Rig(mode);
    rig.client.want("cluster", true);
    rig.open();
    rig.answer("cluster", "1", { one: "x@1" });
    rig.takeReported();
    rig.answer("cluster", "2", { one: "x@2" });
    assertEquals(rig.takeReported(), []);
    assertEquals(rig.client.held("cluster").get("one")!.version, "2");
    rig.answer("cluster", "3", { one: "@3" });
    assertEquals(rig.takeReported(), []);
    assertEquals(rig.client.held("cluster").get("one")!.content, "x");
  }
});

for (const mode of MODES) {
  Deno.test(`${mode}: a server that sends too much is refused the rest by name, and what goes makes room`, () => {
    const rig = new Rig(mode, { heldBytesMax: 10 });
    rig.client.want("cluster", true);
    rig.open();
    rig.answer("cluster", "1", { a: "aaaaaa", b: "bbbbbb" });
    const held = () => [...rig.client.held("cluster").keys()];
    assertEquals(held(), ["a"]);
    const { refusal } = rig.client.status.cluster!;
    assertMatch(refusal!.message, /^b: it has 6 bytes, and all .* of 10$/);
    rig.answer("cluster", "2", { a: "aa", b: "bbbbbb" });
    assertEquals(held(), ["a", "b"]);
    rig.answer("cluster", "3", { b: "bb" }, ["a"]);
    rig.answer("cluster", "4", { b: "bbbbbbbbbb" });
    assertEquals(held(), ["b"]);
    assertEquals(rig.client.status.cluster!.refusal, undefined);
  });
}
