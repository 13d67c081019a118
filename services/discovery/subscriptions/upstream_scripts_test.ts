/** Tests of other servers and clients by their names, as scripts. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  inWorld,
  ScriptedSubscriber,
  WORLD,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import type { SotwRequest } from "../../../proto/xds/discovery.ts";
import { NAMES_PER_KIND_MAX, RESOURCE_NAME_LENGTH_MAX } from "./name_set.ts";
import { NACK_MESSAGE_MAX } from "./nacked.ts";
import { FOREIGN_TYPES_MAX, XdsStreamState } from "./xds_stream_state.ts";

function sotwRequest(typeUrl: string, names: readonly string[]): SotwRequest {
  return {
    mode: "sotw",
    node: undefined,
    typeUrl,
    versionInfo: "",
    resourceNames: names,
    responseNonce: "",
    errorDetail: undefined,
  };
}

// --- Istio: TestShouldRespond ------------------------------------------------

type Step = (client: ScriptedSubscriber) => readonly string[];

const SHOULD_RESPOND: ReadonlyArray<readonly [string, Step, boolean]> = [
  ["initial request", (client) => client.ask("cluster"), true],
  ["ack", (client) => {
    client.ask("cluster");
    return client.ack("cluster");
  }, false],
  ["ack forced", (client) => {
    client.ask("cluster");
    client.ask("endpoints", ["a"]);
    client.settle();
    client.see({ ...WORLD, cluster: { a: "2", b: "1" } });
    client.ack("endpoints");
    return client.ack("endpoints"); // Repeated, as a warming Envoy does.
  }, true],
  ["nack", (client) => {
    client.ask("cluster");
    return client.ask("cluster", [], { nonce: "stale nonce" });
  }, false],
  [
    "reconnect",
    (client) =>
      client.ask("cluster", [], { version: "v1", nonce: "reconnect nonce" }),
    true,
  ],
  ["resources change", (client) => {
    client.ask("endpoints", ["a"]);
    return client.ask("endpoints", ["a", "b"]);
  }, true],
  ["ack with same resources", (client) => {
    client.ask("endpoints", ["b", "a"]);
    return client.ask("endpoints", ["a", "b"]);
  }, false],
  ["unsubscribe EDS", (client) => {
    client.ask("endpoints", ["a", "b"]);
    return client.ask("endpoints", []);
  }, false],
];

for (const [name, step, responds] of SHOULD_RESPOND) {
  Deno.test(`TestShouldRespond: ${name}`, () => {
    assertEquals(step(inWorld("sotw")).length > 0, responds);
  });
}

// --- Pilot -------------------------------------------------------------------

Deno.test("TestAdsReconnectWithNonce, TestAdsReconnectAfterRestart: everything is sent again", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.ask("endpoints", ["a", "b"]);
  client.settle();
  const again = new ScriptedSubscriber("sotw");
  again.see(WORLD);
  const said = { nonce: client.nonceOf("endpoints") };
  const version = client.versionOf("endpoints");
  assertEquals(again.ask("endpoints", ["a", "b"], { ...said, version }), [
    "endpoints a=1 b=1",
  ]);
  assertEquals(again.versionOf("endpoints"), version);
});

Deno.test("TestAdsClusterUpdate: a second set of EDS names is answered", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a"]);
  client.settle();
  assertEquals(client.ask("endpoints", ["b"]), ["endpoints b=1"]);
});

Deno.test("TestEnvoyRDSProtocolError: after a refusal, and names of nothing, a route is still served", () => {
  const client = inWorld("sotw");
  client.ask("route", ["r"]);
  client.nack("route", "protocol error");
  assertEquals(client.ask("route", [], { error: "still" }), []);
  assertEquals(client.ask("route", ["r"]), ["route r=1"]);
});

Deno.test("TestEnvoyRDSUpdatedRouteRequest: A, B, A, then B and A", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ route: { a: "1", b: "1" } });
  const names = [["a"], ["b"], ["a"], ["b", "a"]];
  const sent = names.map((list) => {
    const lines = client.ask("route", list);
    client.settle();
    return lines;
  });
  assertEquals(sent.flat(), [
    "route a=1",
    "route b=1",
    "route a=1",
    "route b=1",
  ]);
});

Deno.test("TestSyncz: sent and acked, and not acked when it is refused", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  assertEquals(client.statusOf("cluster").acked, undefined);
  client.nack("cluster", "no");
  assertEquals(client.statusOf("cluster").acked, undefined);
  client.see({ ...WORLD, cluster: { a: "2", b: "1" } });
  client.ack("cluster");
  const { sent, acked } = client.statusOf("cluster");
  assertEquals(acked?.nonce, sent?.nonce);
});

Deno.test("TestAdsUnsubscribe: nothing more of what is not asked for", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a", "b"]);
  client.settle();
  client.ask("endpoints", []);
  assertEquals(client.see({ ...WORLD, endpoints: { a: "2", b: "2" } }), []);
});

Deno.test("TestDeltaUnsub: nothing more of what is not asked for", () => {
  const client = inWorld("delta");
  client.ask("endpoints", ["a", "b"]);
  client.settle();
  client.ask("endpoints", [], { unsubscribe: ["a", "b"] });
  assertEquals(client.see({ ...WORLD, endpoints: { a: "2", b: "2" } }), []);
});

Deno.test("TestDeltaCDSReconnect, TestDeltaReconnectRequests: what is gone is removed, what is new is sent", () => {
  const client = inWorld("delta");
  assertEquals(client.ask("cluster", ["*"], { initial: { a: "1", x: "1" } }), [
    "cluster b=1 -x",
  ]);
});

// --- go-control-plane --------------------------------------------------------

Deno.test("StaleNonce: a late answer is counted, and changes nothing", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  const nonce = client.nonceOf("cluster");
  client.ack("cluster");
  client.see({ ...WORLD, cluster: { a: "2", b: "1" } });
  assertEquals(client.ack("cluster", { nonce, error: "late" }), []);
  const { staleRequests, nacks, inFlightSinceMs } = client.statusOf("cluster");
  assertEquals([staleRequests, nacks, inFlightSinceMs], [1, 0, 0]);
});

Deno.test("AggregatedHandlersDropStaleResponseAfterUnsubscribe: what waited is not sent", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("endpoints", ["a", "b"]);
    client.see({ ...WORLD, endpoints: { a: "2", b: "1" } });
    if (mode === "sotw") client.ask("endpoints", ["b"], { nonce: "" });
    else client.ask("endpoints", [], { unsubscribe: ["a"] });
    assertEquals(client.ack("endpoints"), []);
  }
});

Deno.test("AggregateRequestType: a request without type_url is INVALID_ARGUMENT", () => {
  const stream = new XdsStreamState({ mode: "sotw" });
  const error = assertThrows(
    () => stream.onRequest(sotwRequest("", []), 0),
    GrpcError,
    "has no type_url",
  );
  assertEquals(error.code, StatusCode.INVALID_ARGUMENT);
});

Deno.test("ResponseHandlers: a stream of one type needs no type_url, and knows no other", () => {
  const client = new ScriptedSubscriber("sotw", { kinds: ["endpoints"] });
  client.see(WORLD);
  client.state.onRequest(sotwRequest("", ["a"]), 0);
  assertEquals(client.pass(0), ["endpoints a=1"]);
  assertThrows(() => client.ask("cluster"), GrpcError, "only endpoints");
});

Deno.test("OpaqueRequestsChannelMuxing: types that are not served do no harm, and are bounded", () => {
  const client = inWorld("sotw");
  for (let i = 0; i < FOREIGN_TYPES_MAX + 5; i++) {
    client.state.onRequest(sotwRequest(`type.googleapis.com/t${i}`, ["x"]), 0);
  }
  assertEquals(client.pass(0), []);
  assertEquals(client.state.status.foreignTypes.length, FOREIGN_TYPES_MAX);
  assertEquals(client.ask("cluster"), ["cluster a=1 b=1"]);
});

Deno.test("SnapshotCreateWatchWithResourcePreviouslyNotRequested: it is sent, and only it", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a"]);
  client.settle();
  assertEquals(client.ask("endpoints", ["a", "b"]), ["endpoints b=1"]);
});

Deno.test("TestDeltaMultipleStreams: streams know nothing of each other", () => {
  const [one, other] = [inWorld("delta"), inWorld("delta")];
  one.ask("endpoints", ["a"]);
  other.ask("endpoints", ["b"]);
  one.settle();
  assertEquals(one.see({ ...WORLD, endpoints: { a: "1", b: "2" } }), []);
});

// --- grpc-go's client --------------------------------------------------------

Deno.test("ADS_ACK_NACK_Simple: taken, refused, taken", () => {
  const client = inWorld("sotw");
  assertEquals(client.ask("listener", ["a"]), ["listener a=1"]);
  client.ack("listener");
  const good = client.versionOf("listener");
  assertEquals(client.see({ ...WORLD, listener: { a: "bad" } }), [
    "listener a=bad",
  ]);
  assertEquals(client.nack("listener", "bad", { version: good }), []);
  assertEquals(client.see({ ...WORLD, listener: { a: "3" } }), [
    "listener a=3",
  ]);
  client.ack("listener");
  assertEquals(client.statusOf("listener").nacked, undefined);
});

Deno.test("NACK_InvalidFirstResponse: refused with no version, then taken", () => {
  const client = inWorld("sotw");
  client.ask("listener", ["a"]);
  assertEquals(client.nack("listener", "bad", { version: "" }), []);
  assertEquals(client.see({ ...WORLD, listener: { a: "2" } }), [
    "listener a=2",
  ]);
});

Deno.test("ACK_NACK_ResourceIsNotRequestedAnymore: an answer with other names is both", () => {
  const client = inWorld("sotw");
  client.ask("listener", ["a"]);
  assertEquals(client.ask("listener", [], { nonce: "1" }), []);
  assertEquals(client.statusOf("listener").acks, 1);
  // Asked for again, with the last nonce and version.
  assertEquals(client.ask("listener", ["a"]), ["listener a=1"]);
});

Deno.test("NACKError_DuplicateSuppression: the same refusal twice is no cause to send", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a"]);
  assertEquals(client.nack("endpoints", "no"), []);
  assertEquals(client.nack("endpoints", "no"), []);
  assertEquals(client.statusOf("endpoints").responses, 1);
});

Deno.test("ResourcesAreRequestedAfterStreamRestart: names with an old version and no nonce", () => {
  const client = inWorld("sotw");
  assertEquals(client.ask("listener", ["a"], { version: "1", nonce: "" }), [
    "listener a=1",
  ]);
  assertEquals(client.ask("cluster", ["a"], { version: "1", nonce: "" }), [
    "cluster a=1",
  ]);
});

Deno.test("LDSWatch_ResourceRemoved: it is missing from the next response, and back in the one after", () => {
  const client = inWorld("sotw");
  client.ask("listener", ["a"]);
  client.settle();
  assertEquals(client.see({ ...WORLD, listener: {} }), ["listener"]);
  client.settle();
  assertEquals(client.see(WORLD), ["listener a=1"]);
});

Deno.test("LDSWatch_PartialValid: one is bad by name, the other is served on", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ listener: { bad: "1", good: "1" } });
  client.ask("listener", ["bad", "good"]);
  client.nack("listener", 'listener "bad": unsupported');
  assertEquals(client.see({ listener: { bad: "1", good: "2" } }), [
    "listener good=2",
  ]);
});

Deno.test("LDSWatch_NewWatcherForRemovedResource: who asks for what is gone is sent so at once", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ listener: {} });
  assertEquals(client.ask("listener", ["gone"]), ["listener"]);
});

Deno.test("NodeProtoSentOnlyInFirstRequest: later requests have none", () => {
  const client = inWorld("sotw");
  client.ask("listener", ["a"]);
  assertEquals(client.ack("listener"), []);
  assert(client.statusOf("listener").acks === 1);
});

// --- Limits ------------------------------------------------------------------

Deno.test("a client that asks for too much is sent so: NAMES_PER_KIND_MAX, RESOURCE_NAME_LENGTH_MAX", () => {
  const names = Array.from({ length: NAMES_PER_KIND_MAX }, (_, i) => `n${i}`);
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("endpoints", names);
    const more = mode === "sotw" ? [...names, "more"] : ["more"];
    const error = assertThrows(() => client.ask("endpoints", more), GrpcError);
    assertEquals(error.code, StatusCode.RESOURCE_EXHAUSTED);
  }
  assertThrows(
    () =>
      inWorld("sotw").ask("endpoints", [
        "x".repeat(RESOURCE_NAME_LENGTH_MAX + 1),
      ]),
    GrpcError,
    `a name of ${RESOURCE_NAME_LENGTH_MAX + 1} characters`,
  );
});

Deno.test("of a client's words so much is kept: NACK_MESSAGE_MAX", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.nack("cluster", "x".repeat(NACK_MESSAGE_MAX + 1));
  const { nacked } = client.statusOf("cluster");
  assertEquals(nacked?.message.length, NACK_MESSAGE_MAX);
});
