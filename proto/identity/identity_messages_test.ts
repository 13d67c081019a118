import { assertEquals, assertThrows } from "@std/assert";
import { GrpcError } from "../grpc/status.ts";
import {
  ChallengeAnswer,
  EnrolmentAnswer,
  JoinRequest,
  RenewRequest,
} from "./identity_messages.ts";

Deno.test("every identity message survives the way over", () => {
  const bytes = Uint8Array.of(1, 0, 255);
  const challenge = { nonce: bytes, validMs: 60_000 };
  assertEquals(ChallengeAnswer.decode(ChallengeAnswer.encode(challenge)), {
    ...challenge,
    nonce: ChallengeAnswer.decode(ChallengeAnswer.encode(challenge)).nonce,
  });
  const join = JoinRequest.decode(JoinRequest.encode({
    token: "tnl1.x",
    node: "node-1",
    csr: bytes,
    software: "tunnel/0.1.0",
  }));
  assertEquals(join.node, "node-1");
  assertEquals([...join.csr], [1, 0, 255]);
  const renew = RenewRequest.decode(RenewRequest.encode({
    node: "node-1",
    csr: bytes,
    nonce: new Uint8Array(0),
    proof: bytes,
  }));
  assertEquals([renew.nonce.length, renew.proof.length], [0, 3]);
});

Deno.test("an enrolment answer says which of the two it is", () => {
  const pending = { reason: "wait", retryAfterMs: 5_000 };
  const waits = EnrolmentAnswer.decode(EnrolmentAnswer.encode({ pending }));
  assertEquals(waits.pending, pending);
  assertEquals(waits.enrolment, undefined);
  const enrolled = EnrolmentAnswer.decode(EnrolmentAnswer.encode({
    enrolment: {
      node: "n",
      certificate: Uint8Array.of(1),
      authorities: Uint8Array.of(2),
      identifiers: "host=n",
    },
  }));
  assertEquals(enrolled.enrolment?.identifiers, "host=n");
  assertEquals(enrolled.pending, undefined);
  const newer = EnrolmentAnswer.decode(new Uint8Array(0));
  assertEquals([newer.pending, newer.enrolment], [undefined, undefined]);
});

Deno.test("bytes that are no identity message are the peer's fault", () => {
  assertThrows(() => JoinRequest.decode(Uint8Array.of(0x0a, 9)), GrpcError);
});
