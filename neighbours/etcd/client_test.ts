import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { FakeEtcd } from "../../tests/support/peers/fake_etcd.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { CALL_TIMEOUT_MS, PAGE_KEYS } from "./client.ts";
import { EtcdError } from "./errors.ts";
import { bytesOf, prefixEnd } from "./keys.ts";
import {
  AUTH_METHODS,
  KV_METHODS,
  LeaseKeepAliveRequest,
  PutRequest,
  WatchRequest,
  WatchResponse,
} from "./etcd_messages.ts";
import { memberName, parseEtcdMember } from "./members.ts";
import { NeighbourConfigError } from "../tls_files.ts";

interface RigOptions {
  readonly members?: number;
  readonly keysMax?: number;
  readonly user?: { readonly name: string; readonly password: string };
}

/** A cluster, and a client whose first member is the first one. */
function rig({ members = 1, ...options }: RigOptions = {}) {
  const timers = new FakeTimers();
  const etcd = new FakeEtcd(timers, members);
  const client = etcd.client(options);
  return {
    etcd,
    client,
    timers,
    [Symbol.dispose]: () => client[Symbol.dispose](),
  };
}

function refusal(code: StatusCode, message: string) {
  return [new GrpcError(code, message)];
}

Deno.test("what is put is got, with its revision and lease", async () => {
  using at = rig();
  const { lease, ttlSeconds } = await at.client.grantLease(10);
  assertEquals([lease, ttlSeconds], ["7587887887887887001", 10]);
  await at.client.put("/a", bytesOf("b"), lease);
  const entry = await at.client.get("/a");
  assertEquals(entry, {
    key: "/a",
    value: bytesOf("b"),
    modRevision: 2n,
    lease,
  });
  await at.client.delete("/a");
  assertEquals(await at.client.get("/a"), undefined);
});

Deno.test("a transaction says whether it was so", async () => {
  using at = rig();
  const put = () =>
    at.client.txn("make /a", {
      compare: [{
        key: bytesOf("/a"),
        result: 0,
        target: 1,
        createRevision: "0",
      }],
      success: [{ requestPut: { key: bytesOf("/a"), value: bytesOf("1") } }],
    });
  assertEquals((await put()).succeeded, true);
  assertEquals((await put()).succeeded, false);
});

Deno.test("a long listing is read in pages of one moment", async () => {
  using at = rig();
  const keys = Array.from({ length: 2 * PAGE_KEYS + 1 }, (_, i) => `/a/${i}`);
  at.etcd.change(Object.fromEntries(keys.map((key) => [key, key])));
  at.etcd.change({ "/b": "not of it" });
  const { entries, revision } = await at.client.list("/a/");
  assertEquals(entries.map(({ key }) => key), keys.sort());
  assertEquals(revision, 3n);
  assertEquals(at.etcd.listed, ["0", "3", "3"]);
});

Deno.test("pages that are compacted while they are read are no listing", async () => {
  using at = rig();
  const keys = Array.from({ length: PAGE_KEYS + 1 }, (_, i) => [`/a/${i}`, ""]);
  at.etcd.change(Object.fromEntries(keys));
  at.etcd.compact();
  await assertRejects(() => at.client.list("/a/"), EtcdError, "compacted");
});

Deno.test("a page that is too large is asked for again in parts", async () => {
  using at = rig();
  at.etcd.change({ "/a/1": "x", "/a/2": "y" });
  at.etcd.failures.set(KV_METHODS.range, [
    ...refusal(StatusCode.RESOURCE_EXHAUSTED, "message too long"),
    ...refusal(StatusCode.RESOURCE_EXHAUSTED, "message too long"),
  ]);
  const { entries } = await at.client.list("/a/");
  assertEquals(entries.length, 2);
  assertEquals(at.etcd.calls.length, 3);
});

Deno.test("a prefix with too many keys is not held", async () => {
  using at = rig({ keysMax: 2 });
  at.etcd.change({ "/a/1": "", "/a/2": "" });
  assertEquals((await at.client.list("/a/")).entries.length, 2);
  at.etcd.change({ "/a/3": "" });
  await assertRejects(() => at.client.list("/a/"), EtcdError, "than 2 keys");
});

Deno.test("a member that is down is passed over", async () => {
  using at = rig({ members: 3 });
  at.etcd.down.add(2379);
  assertEquals(await at.client.get("/a"), undefined);
  assertEquals(at.etcd.calls, [`${KV_METHODS.range} 2380`]);
});

Deno.test("when no member answers, each is named", async () => {
  using at = rig({ members: 2 });
  at.etcd.down.add(2379).add(2380);
  const error = await assertRejects(() => at.client.get("/a"), EtcdError);
  assertEquals(
    error.message,
    "Cannot read /a in etcd: no etcd on 2379; no etcd on 2380",
  );
});

Deno.test("a read goes on to the next member, a write does not", async () => {
  using at = rig({ members: 2 });
  const noLeader = "etcdserver: no leader";
  at.etcd.failures.set(
    KV_METHODS.range,
    refusal(StatusCode.UNAVAILABLE, noLeader),
  );
  at.etcd.failures.set(
    KV_METHODS.put,
    refusal(StatusCode.UNAVAILABLE, noLeader),
  );
  assertEquals(await at.client.get("/a"), undefined);
  await assertRejects(() => at.client.put("/a", bytesOf("x")), EtcdError);
  await at.client.put("/a", bytesOf("x"));
  assertEquals(at.etcd.calls, [
    `${KV_METHODS.range} 2379`,
    `${KV_METHODS.range} 2380`,
    `${KV_METHODS.put} 2380`,
    `${KV_METHODS.put} 2379`,
  ]);
});

Deno.test("a read that nobody answers is given up after each member's time", async () => {
  using at = rig({ members: 2 });
  const hanging = at.etcd.client({
    // What is said to them arrives nowhere.
    connect: (member, signal, use) =>
      at.etcd.connect(member, signal, () => use(new ScriptedStream())),
  });
  let error: unknown;
  const failed = hanging.get("/a").catch((seen) => error = seen);
  for (let waitedMs = 0; error === undefined; waitedMs += 1_000) {
    if (waitedMs > 4 * CALL_TIMEOUT_MS) throw new Error("It waits for ever");
    at.timers.advance(1_000);
    await nextTurn();
  }
  await failed;
  assertEquals((error as EtcdError).code, StatusCode.DEADLINE_EXCEEDED);
  hanging[Symbol.dispose]();
});

Deno.test("a user is shown by a token, got once", async () => {
  const user = { name: "edge", password: "secret" };
  using at = rig({ user });
  at.etcd.user = user;
  await Promise.all([at.client.get("/a"), at.client.get("/b")]);
  assertEquals(at.etcd.calls, [
    `${AUTH_METHODS.authenticate} 2379`,
    `${KV_METHODS.range} 2379`,
    `${KV_METHODS.range} 2379`,
  ]);
});

Deno.test("a token that is not good any more is replaced", async () => {
  const user = { name: "edge", password: "secret" };
  using at = rig({ user });
  at.etcd.user = user;
  await at.client.get("/a");
  at.etcd.forgetTokens();
  await at.client.put("/a", bytesOf("b"));
  assertEquals(at.etcd.calls.slice(2), [
    `${KV_METHODS.put} 2379`,
    `${AUTH_METHODS.authenticate} 2379`,
    `${KV_METHODS.put} 2379`,
  ]);
});

Deno.test("a user is shown when a cluster begins to ask for users", async () => {
  const user = { name: "edge", password: "secret" };
  using at = rig({ user });
  await at.client.get("/a");
  at.etcd.user = user;
  await at.client.get("/a");
  assertEquals(at.etcd.calls.at(-2), `${AUTH_METHODS.authenticate} 2379`);
});

Deno.test("a token that is never good is not asked for without end", async () => {
  const user = { name: "edge", password: "secret" };
  using at = rig({ user });
  at.etcd.user = user;
  const bad = "etcdserver: invalid auth token";
  at.etcd.failures.set(KV_METHODS.range, [
    ...refusal(StatusCode.UNAUTHENTICATED, bad),
    ...refusal(StatusCode.UNAUTHENTICATED, bad),
  ]);
  await assertRejects(() => at.client.get("/a"), EtcdError, bad);
});

Deno.test("a cluster that wants no user is used without one", async () => {
  using at = rig({ user: { name: "edge", password: "secret" } });
  assertEquals(await at.client.get("/a"), undefined);
});

Deno.test("who lacks a user, a password or a right is told so", async () => {
  using none = rig();
  none.etcd.user = { name: "edge", password: "secret" };
  await assertRejects(
    () => none.client.get("/a"),
    EtcdError,
    "it wants a user: give one",
  );
  using wrong = rig({ user: { name: "edge", password: "guess" } });
  wrong.etcd.user = { name: "edge", password: "secret" };
  await assertRejects(
    () => wrong.client.get("/a"),
    EtcdError,
    "the user or its password is wrong",
  );
  using other = rig();
  other.etcd.failures.set(
    KV_METHODS.put,
    refusal(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied"),
  );
  await assertRejects(
    () => other.client.put("/a", bytesOf("b")),
    EtcdError,
    "grant the user a role",
  );
});

Deno.test("a member that goes away in the middle is left", async () => {
  using at = rig({ members: 2 });
  await at.client.get("/a");
  at.etcd.kill(2379);
  await at.client.get("/a");
  assertEquals(at.etcd.calls.at(-1), `${KV_METHODS.range} 2380`);
});

Deno.test("a prefix ends before the next key of its length", () => {
  assertEquals(prefixEnd(bytesOf("/tunnel/")), bytesOf("/tunnel0"));
  assertEquals(prefixEnd(Uint8Array.of(1, 0xff, 0xff)), Uint8Array.of(2));
});

Deno.test("a prefix with nothing behind it ends with all keys", () => {
  assertEquals(prefixEnd(Uint8Array.of(0xff)), Uint8Array.of(0));
  assertEquals(prefixEnd(new Uint8Array()), Uint8Array.of(0));
});

Deno.test("a prefix is left as it was", () => {
  const prefix = Uint8Array.of(7);
  prefixEnd(prefix);
  assertEquals(prefix, Uint8Array.of(7));
});

Deno.test("an address is read with and without scheme and port", () => {
  const read = (text: string, isTls = false) =>
    memberName(parseEtcdMember(text, isTls));
  assertEquals(read("http://10.0.0.1:4001"), "http://10.0.0.1:4001");
  assertEquals(read("https://etcd.example/"), "https://etcd.example:2379");
  assertEquals(read("etcd.example"), "http://etcd.example:2379");
  assertEquals(read("etcd.example:2380", true), "https://etcd.example:2380");
  assertEquals(read("[::1]:2379"), "http://[::1]:2379");
  // Ports that URLs take for unsaid.
  assertEquals(read("http://10.0.0.1:80"), "http://10.0.0.1:80");
  assertEquals(read("https://10.0.0.1:443/"), "https://10.0.0.1:443");
});

Deno.test("what is no address of a member is refused", () => {
  for (
    const text of [
      "",
      "unix:///run/etcd.sock",
      "http://",
      "http://u:p@etcd:2379",
      "http://etcd:2379/v3",
      "http://etcd:99999",
    ]
  ) {
    assertThrows(
      () => parseEtcdMember(text, false),
      NeighbourConfigError,
      "wanted",
    );
  }
});

Deno.test("a lease id of 63 bits comes through unchanged", () => {
  for (const ID of ["7587887887887887001", "9223372036854775807", "-1", "0"]) {
    const bytes = LeaseKeepAliveRequest.encode({ ID });
    assertEquals(LeaseKeepAliveRequest.decode(bytes).ID, ID);
  }
});

Deno.test("a put is written as etcd's rpc.proto numbers it", () => {
  const bytes = PutRequest.encode({
    key: Uint8Array.of(0x61),
    value: Uint8Array.of(0x62),
    lease: "300",
  });
  assertEquals([...bytes], [10, 1, 0x61, 18, 1, 0x62, 24, 0xac, 2]);
});

Deno.test("a watch request is one of its kinds, not both", () => {
  assertEquals(
    [...WatchRequest.encode({ progressRequest: {} })],
    [26, 0],
  );
  const create = WatchRequest.encode({
    createRequest: {
      key: Uint8Array.of(0x61),
      rangeEnd: Uint8Array.of(0x62),
      startRevision: "2",
      progressNotify: true,
      fragment: true,
    },
  });
  assertEquals(
    [...create],
    [10, 12, 10, 1, 0x61, 18, 1, 0x62, 24, 2, 32, 1, 64, 1],
  );
});

Deno.test("a refused watch is read, with fields that are not known here", () => {
  const bytes = Uint8Array.of(
    ...[10, 2, 24, 7], // header { revision: 7 }
    ...[16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], // watch_id: -1
    ...[24, 1, 32, 1, 40, 5], // created, canceled, compact_revision
    ...[50, 2, 0x6e, 0x6f], // cancel_reason
    ...[98, 1, 0xff], // 12 is not used
  );
  const { header, ...rest } = WatchResponse.decode(bytes);
  assertEquals(header?.revision, "7");
  assertEquals<Omit<WatchResponse, "header">>({ ...rest }, {
    watchId: "-1",
    created: true,
    canceled: true,
    compactRevision: "5",
    cancelReason: "no",
    fragment: false,
    events: [],
  });
});
