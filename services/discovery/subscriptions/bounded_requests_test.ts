/** What a stream may not ask for, and what is not served: each has an end. */

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
