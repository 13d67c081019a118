/**
 * Clients of discovery that want more than their quota: what they get is told,
 * and everybody else is served as if they were not there. Without sockets, in
 * time that a test moves.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { MESSAGE_PREFIX_BYTES } from "../../proto/grpc/message_reader.ts";
import { StatusCode, statusName } from "../../proto/grpc/status.ts";
import { REQUEST_BYTES_MAX } from "../../proto/xds/request_decoder.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import {
  DeltaDiscoveryRequestMessage,
  DiscoveryRequestMessage,
} from "../../proto/xds/xds_messages.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import {
  IDLE_GROUPS_MAX,
  NODE_LIMITS,
} from "../../services/discovery/access/quota.ts";
import {
  TICK_MS,
  UNAUTHENTICATED_STREAMS_MAX,
} from "../../services/discovery/streams/open_streams.ts";
import { Discovery } from "../../services/discovery/serving/discovery.ts";
import { generateService } from "../../services/discovery/generate/generate_service.ts";
import { FIRST_REQUEST_MS } from "../../services/discovery/streams/subscriber_stream.ts";
import { RESPONSE_MS_MAX } from "../../services/discovery/streams/request_account.ts";
import {
  certifiedCaller,
  socketCaller,
} from "../support/memory/fake_caller.ts";
import { FakeServerCall } from "../support/memory/fake_server_call.ts";
import { FakeTimers } from "../support/memory/fake_timers.ts";
import { RecordedLog } from "../support/watch/recorded_log.ts";
import {
  endpointsOf,
  ScriptedSource,
  serviceOf,
} from "../support/watch/scripted_source.ts";
import { ADS_PATHS } from "../../services/ads/ads_connection.ts";
import { SEES_EVERYTHING } from "../../services/catalog/model/model.ts";

const NEVER: Promise<undefined> = new Promise(() => {});

/** A server's discovery, and calls of whoever a test says. */
class Rig {
  readonly timers = new FakeTimers();
  readonly log = new RecordedLog();
  readonly discovery: Discovery;
  /** Of making what a service becomes, milliseconds. */
  costMs = 0;

  private constructor(readonly source: ScriptedSource) {
    this.discovery = new Discovery({
      sources: [source],
      windowMinMs: 50,
      windowMaxMs: 1_000,
    }, {
      log: this.log,
      timers: this.timers,
      metrics: new MetricRegistry(),
      random: () => 0,
      generate: (input, variant) => {
        if (this.costMs > 0) this.timers.advance(this.costMs);
        return generateService(input, variant);
      },
      sources: [],
      server: "server-1",
      // Tokens take their time.
      admit: ({ token }) => token === "" ? undefined : NEVER,
      visibleTo: () => SEES_EVERYTHING,
    });
    this.discovery.start();
  }

  static async open(): Promise<Rig> {
    const source = new ScriptedSource("script");
    const rig = new Rig(source);
    source.sink.set({
      services: [serviceOf("web")],
      endpoints: [endpointsOf("web", "10.0.0.1:1")],
    });
    source.sink.synced();
    await rig.discovery.catalog.whenSynced();
    return rig;
  }

  /** A call of a node's, or of somebody who shows nothing. */
  call(
    node: string | undefined,
    fields: Readonly<Record<string, string>> = {},
    path: string = ADS_PATHS.sotw,
  ): FakeServerCall {
    const identity: PeerIdentity = node === undefined
      ? socketCaller().identity
      : certifiedCaller(`node:${node}`).identity;
    const remoteAddress = "192.0.2.7:1000";
    const origin = { identity, remoteAddress, needsNoProof: false };
    const call = new FakeServerCall(fields);
    call.begin(this.discovery.methods(origin)[path]!);
    return call;
  }

  /** A client of clusters. */
  client(node: string, said: Said = {}): FakeServerCall {
    const call = this.call(node);
    this.ask(call, node, said);
    return call;
  }

  ask(call: FakeServerCall, id: string, { zone = "" }: Said = {}): void {
    call.receive(DiscoveryRequestMessage.encode({
      node: { id, locality: { zone }, userAgentName: "envoy" },
      typeUrl: TYPE_URLS.cluster,
    }));
  }

  /** Somebody else is served as ever. */
  assertServed(): void {
    const call = this.client("honest");
    this.timers.advance(1);
    assertEquals([call.messages.length, call.status], [1, undefined]);
    call.halfClose();
  }
}

interface Said {
  readonly zone?: string;
}

function endOf({ status }: FakeServerCall): string {
  return status === undefined ? "open" : statusName(status.code);
}

Deno.test("unauthenticated callers hold no stream, however many they ask for", async () => {
  const rig = await Rig.open();
  for (let index = 0; index < 25_000; index++) {
    assertEquals(endOf(rig.call(undefined)), "UNAUTHENTICATED");
  }
  assertEquals(rig.discovery.streams.size, 0);
});

Deno.test("unauthenticated streams that wait for a decision displace each other and nobody else", async () => {
  const rig = await Rig.open();
  const crowd = Array.from({ length: 3 * UNAUTHENTICATED_STREAMS_MAX }, () => {
    const call = rig.call(undefined, { authorization: "Bearer made.up" });
    rig.ask(call, "victim");
    return call;
  });
  assertEquals(rig.discovery.streams.size, UNAUTHENTICATED_STREAMS_MAX);
  assertEquals(endOf(crowd[0]!), "RESOURCE_EXHAUSTED");
  assertEquals(endOf(crowd.at(-1)!), "open");
  rig.assertServed();
});

Deno.test("calls that cannot be read are no part of a quota", async () => {
  const rig = await Rig.open();
  for (let index = 0; index <= NODE_LIMITS.streams; index++) {
    const call = rig.call("greedy", { "grpc-encoding": "made-up" });
    rig.ask(call, "greedy");
    call.halfClose();
  }
  assertEquals(rig.discovery.streams.size, 0);
  assertEquals(endOf(rig.client("greedy")), "open");
});

Deno.test("who calls and asks for nothing is hung up on", async () => {
  const rig = await Rig.open();
  const call = rig.call("silent");
  rig.timers.advance(FIRST_REQUEST_MS - TICK_MS);
  assertEquals(endOf(call), "open");
  rig.timers.advance(2 * TICK_MS);
  assertEquals(endOf(call), "DEADLINE_EXCEEDED");
  assertEquals(rig.discovery.streams.size, 0);
});

Deno.test("a node has its quota of streams, and gets it back", async () => {
  const rig = await Rig.open();
  const { streams } = NODE_LIMITS;
  const calls = Array.from({ length: streams }, () => rig.call("greedy"));
  const more = rig.call("greedy");
  assertEquals(endOf(more), "RESOURCE_EXHAUSTED");
  assertMatch(more.status!.message, /node greedy: it has 2048 discovery str/);
  rig.assertServed();
  calls[0]!.cancel();
  assertEquals(endOf(rig.call("greedy")), "open");
});

Deno.test("a node makes few views at once, whatever zones it says", async () => {
  const rig = await Rig.open();
  const { groups } = NODE_LIMITS;
  const calls = Array.from(
    { length: groups + 1 },
    (_, index) => rig.client("greedy", { zone: `z${index}` }),
  );
  assertEquals(endOf(calls[0]!), "open");
  assertEquals(endOf(calls[groups]!), "RESOURCE_EXHAUSTED");
  // One of a kind that there is costs nobody anything.
  assertEquals(endOf(rig.client("greedy", { zone: "z3" })), "open");
  rig.assertServed();
  calls[0]!.halfClose();
  assertEquals(endOf(rig.client("greedy", { zone: "new" })), "open");
});

Deno.test("a node that comes back as ever new kinds of client is slowed down, and views do not pile up", async () => {
  const rig = await Rig.open();
  const { burst } = NODE_LIMITS.newGroups;
  const ends: string[] = [];
  for (let index = 0; index < 1_000; index++) {
    const call = rig.client("greedy", { zone: `z${index}` });
    ends.push(endOf(call));
    call.halfClose();
  }
  const served = ends.filter((end) => end === "open").length;
  assertEquals(served, burst);
  assertEquals(ends.at(-1), "RESOURCE_EXHAUSTED");
  rig.assertServed();
  for (let node = 0; node < 20; node++) {
    for (let index = 0; index < 20; index++) {
      rig.client(`n${node}`, { zone: `${node} ${index}` }).halfClose();
    }
  }
  const kept = rig.discovery.views.groups.length;
  assertEquals(kept <= IDLE_GROUPS_MAX + 1, true, `${kept}`);
});

Deno.test("unfinished requests of one node are so much, and no more", async () => {
  const rig = await Rig.open();
  const unfinished = new Uint8Array(REQUEST_BYTES_MAX);
  new DataView(unfinished.buffer).setUint32(1, REQUEST_BYTES_MAX);
  const ends = Array.from({ length: 80 }, () => {
    const call = rig.call("greedy");
    call.receiveBytes(unfinished);
    return endOf(call);
  });
  const open = ends.filter((end) => end === "open").length;
  const most = NODE_LIMITS.bytes /
    (REQUEST_BYTES_MAX - MESSAGE_PREFIX_BYTES);
  assertEquals(open <= most, true, `${open}`);
  assertEquals(ends.at(-1), "RESOURCE_EXHAUSTED");
  rig.assertServed();
});

Deno.test("names that differences add are counted, and those taken back are not", async () => {
  const rig = await Rig.open();
  const call = rig.call("greedy", {}, ADS_PATHS.delta);
  const { quota } = [...rig.discovery.streams][0]!;
  const say = (change: Record<string, readonly string[]>) =>
    call.receive(DeltaDiscoveryRequestMessage.encode({
      node: { id: "greedy" },
      typeUrl: TYPE_URLS.endpoints,
      ...change,
    }));
  const names = (from: number) =>
    Array.from({ length: 2_000 }, (_, i) => `${from + i} `.padEnd(500, "x"));
  say({ resourceNamesSubscribe: ["a"] });
  const few = quota.bytes;
  for (let i = 0; i < 4; i++) {
    say({ resourceNamesSubscribe: names(i * 2_000) });
  }
  assertEquals(quota.bytes - few, 8_000 * 500);
  for (let i = 0; i < 4; i++) {
    say({ resourceNamesUnsubscribe: names(i * 2_000) });
  }
  assertEquals(quota.bytes, few);
  call.cancel();
  assertEquals([quota.bytes, quota.streams], [0, 0]);
});

Deno.test("who keeps the server at work waits until others had their turn", async () => {
  const rig = await Rig.open();
  const { burst } = NODE_LIMITS.work;
  rig.costMs = 2 * burst;
  const busy = rig.client("greedy");
  rig.costMs = 0;
  // What it may say next is not replaced: its window closes.
  assertEquals(busy.consumedBytes, 0);
  rig.assertServed();
  rig.timers.advance(TICK_MS);
  assertEquals(busy.consumedBytes, 0);
  rig.timers.advance(60_000);
  assertEquals(busy.consumedBytes > 0, true);
  assertEquals(endOf(busy), "open");
});

Deno.test("who comes and goes all day fills no log", async () => {
  const rig = await Rig.open();
  const { burst } = NODE_LIMITS.lines;
  for (let index = 0; index < 3 * burst; index++) {
    rig.client("greedy").halfClose();
  }
  const lines = () => rig.log.matching(/^discovery client|^too many log lines/);
  assertEquals(lines().length, burst + 1);
  assertMatch(lines().at(-1)!.message, /^too many .* of node greedy: /);
  rig.assertServed();
  assertEquals(lines().length, burst + 3);
  rig.timers.advance(60_000);
  rig.client("greedy");
  assertEquals(lines().length, burst + 4);
});

Deno.test("a response that is taken byte by byte is given up", async () => {
  const rig = await Rig.open();
  const slow = rig.call("slow");
  slow.isTaking = false;
  rig.ask(slow, "slow");
  assertEquals(slow.keptBytes > 0, true);
  for (let passed = 0; passed < RESPONSE_MS_MAX; passed += TICK_MS) {
    assertEquals(endOf(slow), "open");
    slow.keptBytes += passed % 2 === 0 ? 1 : -1;
    rig.timers.advance(TICK_MS);
  }
  rig.timers.advance(TICK_MS);
  assertEquals(slow.status?.code, StatusCode.RESOURCE_EXHAUSTED);
  assertEquals(slow.wasAborted, true);
});
