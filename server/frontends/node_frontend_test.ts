import { assertEquals, assertMatch } from "@std/assert";
import { Metadata } from "../../proto/grpc/metadata.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import type { DialAnswer } from "../../proto/link/dial_handler.ts";
import { NODE_FIELD } from "../../proto/link/dial_wishes.ts";
import { dialProxy } from "../../proto/link/proxy_client.ts";
import type { DialError } from "../../proto/peer/dial_error.ts";
import {
  type LinkAuthorization,
  SILENT_OBSERVER,
} from "../../proto/link/link.ts";
import { certifiedCaller } from "../../tests/support/memory/fake_caller.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { join } from "../../proto/transfer/transfer.ts";
import { CallerLoads, countedAs } from "../routing/caller_loads.ts";
import type { CallerDial } from "../routing/dialer.ts";
import { virtualAddressOf } from "../../services/discovery/generate/virtual_addresses.ts";
import { NODE_CONDUITS_MAX, NodeFrontend } from "./node_frontend.ts";

const VIRTUAL = virtualAddressOf({
  agent: { key: "id", value: "edge-1" },
  address: "10.0.0.7",
});

function setUp(admission: () => LinkAuthorization = () => undefined) {
  const timers = new FakeTimers();
  const orders: { order: CallerDial; answer: DialAnswer; gone: boolean }[] = [];
  const refused: string[] = [];
  let open = 0;
  let authorized = 0;
  const loads = new CallerLoads();
  const frontend = new NodeFrontend({
    timers,
    observer: SILENT_OBSERVER,
    messageBytesMax: 1024 * 1024,
    admit: ({ peer }) => {
      authorized++;
      assertEquals(peer.agentId, "edge-9");
      return admission();
    },
    dial: (order, answer) => {
      const dial = { order, answer, gone: false };
      const counted = { countedAs: countedAs(order.caller) };
      orders.push(dial);
      loads.began(counted);
      return {
        cancel() {
          dial.gone = true;
          loads.over(counted);
        },
      };
    },
    ...{ loads, join },
    resolve: (host) =>
      host === VIRTUAL
        ? { agent: { key: "id", value: "edge-1" }, address: "10.0.0.7" }
        : undefined,
    refused: (_from, reason) => refused.push(reason),
    counted: (change) => void (open += change),
  });
  /** A caller on a connection of its own, and what it receives. */
  const connect = (caller = certifiedCaller("node:edge-9")) => {
    const pair = new ConnectionPair({
      clock: timers,
      methods: frontend.methods(caller),
      server: { settings: { maxConcurrentStreams: 2 * NODE_CONDUITS_MAX } },
    });
    const dial = (address: string, node?: string) => {
      const outcome: { conduit?: ConduitProbe; error?: DialError } = {};
      const pending = dialProxy(pair.client, { protocol: "tcp", address }, {
        onConnected: (conduit) => outcome.conduit = new ConduitProbe(conduit),
        onFailed: (error) => outcome.error = error,
      }, {
        authority: "server",
        timers,
        dialId: 1,
        ...(node && { metadata: new Metadata({ [NODE_FIELD]: node }) }),
      });
      return { pending, outcome };
    };
    return { dial };
  };
  return {
    ...{ frontend, orders, refused, connect },
    open: () => open,
    authorized: () => authorized,
  };
}

Deno.test("a node's call is a dial of that node's", async () => {
  const { orders, connect, authorized, open } = setUp();
  const { dial } = connect();
  const { outcome } = dial("10.0.0.7:80", "id=edge-1");
  dial("10.0.0.8:80");
  await settled();
  assertEquals(
    orders.map(({ order: { target, node, caller } }) => [
      target.address,
      node,
      caller.node,
      caller.identity.commonName,
    ]),
    [
      ["10.0.0.7:80", "id=edge-1", "edge-9", "node:edge-9"],
      ["10.0.0.8:80", undefined, "edge-9", "node:edge-9"],
    ],
  );
  // Two calls on one connection are authorized once.
  assertEquals(authorized(), 1);
  const [end, target] = MemoryConduit.pair();
  const far = new ConduitProbe(target);
  orders[0]!.answer.connected(end);
  await settled();
  await outcome.conduit!.send("hello");
  assertEquals(far.text, "hello");
  assertEquals(open(), 1);
});

Deno.test("a virtual address is the agent and the address that it stands for", async () => {
  const { orders, connect, refused } = setUp();
  const { dial } = connect();
  dial(`[${VIRTUAL}]:80`, "id=edge-7");
  const unknown = virtualAddressOf({ address: "10.0.0.9" });
  const { outcome } = dial(`[${unknown}]:80`);
  await settled();
  assertEquals(
    orders.map(({ order }) => [order.target.address, order.node]),
    [["10.0.0.7:80", "id=edge-1"]],
  );
  assertEquals(outcome.error?.reason, "no-agent");
  assertMatch(outcome.error!.message, /no endpoint that is there has this/);
  assertEquals(refused.length, 1);
});

Deno.test("a caller that the authorizers refuse receives the reason, at once or later", async () => {
  const refusal = { code: StatusCode.PERMISSION_DENIED, message: "revoked" };
  for (const decision of [() => refusal, () => Promise.resolve(refusal)]) {
    const { orders, connect } = setUp(decision);
    const { outcome } = connect().dial("10.0.0.7:80");
    await settled();
    assertEquals([outcome.error?.reason, outcome.error?.message], [
      "refused",
      "revoked",
    ]);
    assertEquals(orders, []);
  }
});

Deno.test("a caller that is refused later loses what it has", async () => {
  const { frontend, orders, connect, authorized, open } = setUp();
  const { dial } = connect();
  const { outcome } = dial("10.0.0.7:80");
  await settled();
  assertEquals(frontend.links.length, 0);
  orders[0]!.answer.connected(MemoryConduit.pair()[0]);
  await settled();
  const [calls] = frontend.links;
  assertEquals(calls!.peer.identity.commonName, "node:edge-9");
  frontend.reconsider();
  calls!.close("the node was revoked");
  await settled();
  assertEquals(outcome.conduit!.end?.kind, "reset");
  assertEquals([frontend.links.length, open()], [0, 0]);
  dial("10.0.0.7:80");
  await settled();
  assertEquals(authorized(), 2);
});

Deno.test("a caller that is refused while a dial is under way gets nothing of it", async () => {
  const refusal = { code: StatusCode.PERMISSION_DENIED, message: "revoked" };
  for (const later of [() => refusal, () => Promise.resolve(refusal)]) {
    let admission: () => LinkAuthorization = () => undefined;
    const { frontend, orders, connect, open } = setUp(() => admission());
    const { outcome } = connect().dial("10.0.0.7:80");
    await settled();
    admission = later;
    frontend.reconsider();
    const [end, target] = MemoryConduit.pair();
    const far = new ConduitProbe(target);
    orders[0]!.answer.connected(end);
    await settled();
    assertEquals(outcome.conduit!.end?.kind, "reset");
    assertEquals([far.text, frontend.links.length, open()], ["", 0, 0]);
  }
});

Deno.test("many dials that wait for one decision are counted like others", async () => {
  const decision = Promise.withResolvers<undefined>();
  const { orders, connect } = setUp(() => decision.promise);
  const { dial } = connect();
  const dials = Array.from(
    { length: NODE_CONDUITS_MAX + 3 },
    () => dial("10.0.0.7:80"),
  );
  await settled();
  decision.resolve(undefined);
  await settled();
  assertEquals(orders.length, NODE_CONDUITS_MAX);
  assertMatch(
    dials.at(-1)!.outcome.error!.message,
    /and no node may have more/,
  );
});

Deno.test("a node has so many connections, and those that are over do not count", async () => {
  const { orders, connect, refused } = setUp();
  const { dial } = connect();
  const dials = Array.from(
    { length: NODE_CONDUITS_MAX },
    () => dial("10.0.0.7:80"),
  );
  await settled();
  const full = connect().dial("10.0.0.7:80");
  await settled();
  assertMatch(full.outcome.error!.message, /has 4096 connections, and no node/);
  assertEquals([orders.length, refused.length], [NODE_CONDUITS_MAX, 1]);
  dials[0]!.pending.cancel();
  await settled();
  assertEquals(orders[0]!.gone, true);
  connect().dial("10.0.0.7:80");
  await settled();
  assertEquals(orders.length, NODE_CONDUITS_MAX + 1);
});
