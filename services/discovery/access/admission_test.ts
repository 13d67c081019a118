import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { Metadata } from "../../../proto/grpc/metadata.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import type { LinkCandidate } from "../../../proto/link/link.ts";
import {
  certifiedCaller,
  socketCaller,
} from "../../../tests/support/memory/fake_caller.ts";
import { discoveryNode } from "../../../tests/support/xds/discovery_node.ts";
import {
  type Admit,
  admitSubscriber,
  type CallOrigin,
  refuseUnauthenticated,
  subscriberOf,
} from "./subscriber.ts";

const REFUSAL = { code: StatusCode.PERMISSION_DENIED, message: "revoked" };

function authorize(
  origin: CallOrigin,
  metadata: Metadata,
  admit: Admit,
): void | Promise<void> {
  const said = discoveryNode({ id: "edge-1/envoy", userAgentName: "envoy" });
  const subscriber = subscriberOf(origin, metadata, said);
  return admitSubscriber(origin, subscriber, metadata, admit);
}

const byCertificate: CallOrigin = {
  ...certifiedCaller("node:edge-1"),
  needsNoProof: false,
};
const byNothing: CallOrigin = { ...socketCaller(), needsNoProof: false };

Deno.test("a subscriber is authorized as an agent of its node's name would be", () => {
  const asked: LinkCandidate[] = [];
  const admit: Admit = (candidate) => void asked.push(candidate);
  authorize(byCertificate, new Metadata(), admit);
  const token = new Metadata({ authorization: "Bearer t" });
  authorize(byNothing, token, admit);
  assertEquals(
    asked.map(({ peer, token }) => [peer.agentId, peer.software, token]),
    [["edge-1", "envoy", ""], ["edge-1", "envoy", "t"]],
  );
});

Deno.test("whom an authorizer refuses is refused with its words", async () => {
  assertThrows(
    () => authorize(byCertificate, new Metadata(), () => REFUSAL),
    GrpcError,
    "revoked",
  );
  await assertRejects(
    () => authorize(byCertificate, new Metadata(), async () => await REFUSAL)!,
    GrpcError,
    "revoked",
  );
});

Deno.test("who shows nothing is served on loopback at most", () => {
  const from = (remoteAddress: string, fields = {}) =>
    refuseUnauthenticated(
      { ...byNothing, remoteAddress },
      new Metadata(fields),
    );
  for (const address of ["192.0.2.7:1", "[fd00::1]:1", "[::2]:1", "unix"]) {
    assertThrows(() => from(address), GrpcError, "neither a certificate");
  }
  from("192.0.2.7:1", { authorization: "Bearer t" });
  for (const address of ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"]) {
    from(address);
  }
  refuseUnauthenticated(byCertificate, new Metadata());
});

Deno.test("no subscriber is authorized where none has to authenticate", () => {
  authorize(
    { ...byNothing, needsNoProof: true },
    new Metadata(),
    () => REFUSAL,
  );
});
