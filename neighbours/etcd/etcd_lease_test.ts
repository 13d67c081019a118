import { assert, assertEquals } from "@std/assert";
import { FakeEtcd } from "../../tests/support/peers/fake_etcd.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { Transcript } from "../../tests/support/watch/transcript.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { EtcdClient } from "./client.ts";
import { bytesOf } from "./keys.ts";
import { EtcdLease } from "./etcd_lease.ts";
import { KV_METHODS, LEASE_METHODS } from "./etcd_messages.ts";

const TTL_SECONDS = 15;
const INTERVAL_MS = TTL_SECONDS * 1_000 / 3;

/** A cluster, who holds a lease there, and what was said. */
class Rig implements AsyncDisposable {
  readonly timers = new FakeTimers();
  readonly etcd: FakeEtcd;
  readonly lease: EtcdLease;
  readonly said = new Transcript();
  readonly #client: EtcdClient;

  constructor(members = 1) {
    const { timers } = this;
    this.etcd = new FakeEtcd(timers, members);
    const random = () => 0;
    this.#client = this.etcd.client();
    this.lease = new EtcdLease({
      client: this.#client,
      ttlSeconds: TTL_SECONDS,
      timers,
      random,
      write: (lease) => this.#client.put("/a", bytesOf("here"), lease),
      onHeld: (lease) => this.said.add(`held ${lease}`),
      onLost: () => this.said.add("lost"),
      onProblem: ({ message }) => this.said.add(`problem: ${message}`),
    });
  }

  /** Time for the next renewal, and that it is asked for. */
  async renewal(): Promise<void> {
    const { calls } = this.etcd;
    const count = () => calls.filter((call) => call.startsWith("renew")).length;
    const before = count();
    await nextTurn();
    this.timers.advance(INTERVAL_MS);
    await this.etcd.until(() => count() > before);
    await nextTurn();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lease.stop();
    this.#client[Symbol.dispose]();
  }
}

Deno.test("a lease is held, renewed thrice in its life, and ended", async () => {
  await using rig = new Rig();
  rig.lease.start();
  const [held] = await rig.said.first(1);
  assertEquals(rig.etcd.keys, ["/a"]);
  await rig.renewal();
  await rig.renewal();
  await rig.lease.stop();
  assertEquals(rig.etcd.keys, []);
  assertEquals(rig.said.lines, [held]);
  assertEquals(rig.etcd.leases.size, 0);
  const streams = rig.etcd.calls.filter((call) =>
    call.startsWith(LEASE_METHODS.leaseKeepAlive)
  );
  assertEquals(streams.length, 1);
});

Deno.test("a lease that is gone is replaced, and what it held is written again", async () => {
  await using rig = new Rig();
  rig.lease.start();
  const [first] = await rig.said.first(1);
  const [lease] = rig.etcd.leases;
  rig.etcd.expire(lease!);
  assertEquals(rig.etcd.keys, []);
  await nextTurn();
  rig.timers.advance(INTERVAL_MS);
  const said = await rig.said.first(3);
  assertEquals(said.slice(0, 2), [first, "lost"]);
  assert(said[2]!.startsWith("held") && said[2] !== first);
  assertEquals(rig.etcd.keys, ["/a"]);
});

Deno.test("when a member goes, the same lease is renewed at the next", async () => {
  await using rig = new Rig(2);
  rig.lease.start();
  const [held] = await rig.said.first(1);
  await rig.renewal();
  rig.etcd.kill(2379);
  const said = await rig.said.first(2);
  assert(said[1]!.startsWith("problem: Cannot renew a lease"), said[1]);
  rig.timers.advance(100);
  await rig.etcd.until(() =>
    rig.etcd.calls.includes(`${LEASE_METHODS.leaseKeepAlive} 2380`)
  );
  await rig.renewal();
  assertEquals(rig.said.lines.slice(0, 1), [held]);
  assertEquals(rig.etcd.leases.size, 1, "no other lease was taken");
});

Deno.test("a member that does not answer is left for the next", async () => {
  await using rig = new Rig(2);
  rig.lease.start();
  await rig.said.first(1);
  rig.etcd.isSilent = true;
  await rig.renewal();
  rig.timers.advance(INTERVAL_MS);
  const said = await rig.said.first(2);
  assert(said[1]!.includes("no answer within 5000 ms"), said[1]);
  rig.etcd.isSilent = false;
  rig.timers.advance(100);
  await rig.etcd.until(() =>
    rig.etcd.calls.includes(`${LEASE_METHODS.leaseKeepAlive} 2380`)
  );
});

Deno.test("what cannot be written keeps no lease, and is tried again", async () => {
  await using rig = new Rig();
  const denied = "etcdserver: permission denied";
  rig.etcd.failures.set(KV_METHODS.put, [
    new GrpcError(StatusCode.PERMISSION_DENIED, denied),
  ]);
  rig.lease.start();
  const [problem] = await rig.said.first(1);
  assert(problem!.includes(denied), problem);
  assertEquals(rig.etcd.leases.size, 0);
  rig.timers.advance(100);
  assert((await rig.said.first(2))[1]!.startsWith("held"));
});

Deno.test("stopping ends a lease that had ended without complaint", async () => {
  await using rig = new Rig();
  rig.lease.start();
  await rig.said.first(1);
  rig.etcd.expire([...rig.etcd.leases][0]!);
  await rig.lease.stop();
  assertEquals(rig.said.lines.length, 1);
});
