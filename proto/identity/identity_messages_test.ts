import { assertEquals, assertThrows } from "@std/assert";
import { GrpcError } from "../grpc/status.ts";
import {
  challengeAnswer,
  enrolmentAnswer,
  IDENTITY_PROTO,
  joinRequest,
  renewRequest,
} from "./identity_messages.ts";

Deno.test("the embedded text is identity.proto", async () => {
  const path = new URL("identity.proto", import.meta.url);
  assertEquals(IDENTITY_PROTO, await Deno.readTextFile(path));
});

Deno.test("every identity message survives the way over", () => {
  const bytes = Uint8Array.of(1, 0, 255);
  const challenge = { nonce: bytes, validMs: 60_000 };
  assertEquals(challengeAnswer.decode(challengeAnswer.encode(challenge)), {
    ...challenge,
    nonce: challengeAnswer.decode(challengeAnswer.encode(challenge)).nonce,
  });
  const join = joinRequest.decode(joinRequest.encode({
    token: "tnl1.x",
    node: "node-1",
    csr: bytes,
    software: "tunnel/0.1.0",
  }));
  assertEquals(join.node, "node-1");
  assertEquals([...join.csr], [1, 0, 255]);
  const renew = renewRequest.decode(renewRequest.encode({
    node: "node-1",
    csr: bytes,
    nonce: new Uint8Array(0),
    proof: bytes,
  }));
  assertEquals([renew.nonce.length, renew.proof.length], [0, 3]);
});

Deno.test("an enrolment answer says which of the two it is", () => {
  const pending = { reason: "wait", retryAfterMs: 5_000 };
  const waits = enrolmentAnswer.decode(enrolmentAnswer.encode({ pending }));
  assertEquals(waits.pending, pending);
  assertEquals(waits.enrolment, undefined);
  const enrolled = enrolmentAnswer.decode(enrolmentAnswer.encode({
    enrolment: {
      node: "n",
      certificate: Uint8Array.of(1),
      authorities: Uint8Array.of(2),
      identifiers: "host=n",
    },
  }));
  assertEquals(enrolled.enrolment?.identifiers, "host=n");
  assertEquals(enrolled.pending, undefined);
  const newer = enrolmentAnswer.decode(new Uint8Array(0));
  assertEquals([newer.pending, newer.enrolment], [undefined, undefined]);
});

Deno.test("bytes that are no identity message are the peer's fault", () => {
  assertThrows(() => joinRequest.decode(Uint8Array.of(0x0a, 9)), GrpcError);
});
