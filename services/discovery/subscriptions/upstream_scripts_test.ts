/** Tests of other servers and clients by their names, as scripts. */

import { transcripts } from "../../../tests/support/xds/transcripts.ts";
import { assertEquals, assertThrows } from "@std/assert";
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

// --- go-control-plane --------------------------------------------------------

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

Deno.test("LDSWatch_PartialValid: one is bad by name, the other is served on", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ listener: { bad: "1", good: "1" } });
  client.ask("listener", ["bad", "good"]);
  client.nack("listener", 'listener "bad": unsupported');
  assertEquals(client.see({ listener: { bad: "1", good: "2" } }), [
    "listener good=2",
  ]);
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

transcripts(
  `
# sotw world: TestAdsClusterUpdate: a second set of EDS names is answered
ask endpoints a -> endpoints a=1
settle
ask endpoints b -> endpoints b=1

# sotw world: TestEnvoyRDSProtocolError: after a refusal, and names of nothing, a route is still served
ask route r -> route r=1
nack route "protocol error"
ask route error="still"
ask route r -> route r=1

# sotw: TestEnvoyRDSUpdatedRouteRequest: A, B, A, then B and A
see route a=1 b=1
ask route a -> route a=1
settle
ask route b -> route b=1
settle
ask route a -> route a=1
settle
ask route b a -> route b=1
settle

# sotw world: TestSyncz: sent and acked, and not acked when it is refused
ask cluster -> cluster a=1 b=1
status cluster acked=undefined
nack cluster "no"
status cluster acked=undefined
see cluster a=2 b=1 -> cluster a=2 b=1
ack cluster
status cluster acked.nonce="2" sent.nonce="2"

# sotw world: TestAdsUnsubscribe: nothing more of what is not asked for
ask endpoints a b -> endpoints a=1 b=1
settle
ask endpoints
see endpoints a=2 b=2

# delta world: TestDeltaUnsub: nothing more of what is not asked for
ask endpoints a b -> endpoints a=1 b=1
settle
ask endpoints -a -b
see endpoints a=2 b=2

# delta world: TestDeltaCDSReconnect, TestDeltaReconnectRequests: what is gone is removed, what is new is sent
ask cluster * has=a=1,x=1 -> cluster b=1 -x

# sotw world: StaleNonce: a late answer is counted, and changes nothing
ask cluster -> cluster a=1 b=1
ack cluster
see cluster a=2 b=1 -> cluster a=2 b=1
ack cluster nonce=1 error="late"
status cluster staleRequests=1 nacks=0 inFlightSinceMs=0

# sotw world: SnapshotCreateWatchWithResourcePreviouslyNotRequested: it is sent, and only it
ask endpoints a -> endpoints a=1
settle
ask endpoints a b -> endpoints b=1

# sotw world: NACK_InvalidFirstResponse: refused with no version, then taken
ask listener a -> listener a=1
nack listener "bad" version=
see listener a=2 -> listener a=2

# sotw world: ACK_NACK_ResourceIsNotRequestedAnymore: an answer with other names is both
ask listener a -> listener a=1
ask listener nonce=1
status listener acks=1
// Asked for again, with the last nonce and version.
ask listener a -> listener a=1

# sotw world: NACKError_DuplicateSuppression: the same refusal twice is no cause to send
ask endpoints a -> endpoints a=1
nack endpoints "no"
nack endpoints "no"
status endpoints responses=1

# sotw world: ResourcesAreRequestedAfterStreamRestart: names with an old version and no nonce
ask listener a nonce= version=1 -> listener a=1
ask cluster a nonce= version=1 -> cluster a=1

# sotw world: LDSWatch_ResourceRemoved: it is missing from the next response, and back in the one after
ask listener a -> listener a=1
settle
see listener - -> listener
settle
see listener a=1 -> listener a=1

# sotw: LDSWatch_NewWatcherForRemovedResource: who asks for what is gone is sent so at once
see listener -
ask listener gone -> listener

# sotw world: NodeProtoSentOnlyInFirstRequest: later requests have none
ask listener a -> listener a=1
ack listener
status listener acks=1
`,
);
