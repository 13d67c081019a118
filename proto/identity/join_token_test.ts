import { assertEquals, assertThrows } from "@std/assert";
import {
  formatJoinToken,
  JoinTokenError,
  parseJoinToken,
} from "./join_token.ts";
import { isDnsName, isJoinableName, isNodeName } from "./node_name.ts";
import { renewalStatement } from "./enrolment.ts";
import { GrpcError } from "../grpc/status.ts";
import {
  ChallengeAnswer,
  EnrolmentAnswer,
  JoinRequest,
  RenewRequest,
} from "./identity_messages.ts";

const TOKEN = {
  authorityPin: "A".repeat(43),
  id: "abcdefg234",
  secret: "s_-".repeat(7) + "x",
};

Deno.test("a token survives being written down, with space around it", () => {
  assertEquals(parseJoinToken(` ${formatJoinToken(TOKEN)}\n`), TOKEN);
});

Deno.test("what is wrong with a token is said without repeating it", () => {
  const whole = formatJoinToken(TOKEN);
  for (
    const [text, words] of [
      ["", "does not begin"],
      [whole.replace("tnl1", "tnl2"), "does not begin"],
      [whole + ".x", "5 parts"],
      [whole.replace("AAA", "A!A"), "no hash"],
      [whole.replace("abc", "ABC"), "no token id"],
      [whole.slice(0, -1), "was the line cut?"],
    ] as const
  ) {
    const error = assertThrows(
      () => parseJoinToken(text),
      JoinTokenError,
      words,
    );
    assertEquals(error.message.includes(TOKEN.secret), false);
  }
});

Deno.test("node names are safe in files, certificates and DNS", () => {
  for (const name of ["n", "node-1", "a.b_c", "1", "x".repeat(200)]) {
    assertEquals(isNodeName(name), true, name);
  }
  for (
    const name of ["", ".", "..", "a/b", "../x", "A", "-a", "a.", "a b", "ü"]
      .concat("a\0", "a\n", "x".repeat(201), "*", "tunnel-server")
  ) assertEquals(isNodeName(name), false, name);
  for (const name of ["n", "node-1", "rack.7", "10.9.0.2.x", "0xn", "1.a"]) {
    assertEquals(isJoinableName(name), true, name);
  }
  for (
    const name of ["10.9.0.2", "1.2.3", "127.1", "1", "0x7f.1", "0x7f000001"]
      .concat("0", "010.0.0.1", "2130706433", "0x", "1.2.3.4.5", "999.1")
      .concat("tunnel-server", "::1", "10.9.0.2.", "A")
  ) assertEquals(isJoinableName(name), false, name);
  assertEquals(["a.b", "a_b", "a..b", "a-"].map(isDnsName), [
    true,
    false,
    false,
    false,
  ]);
});

Deno.test("what is signed names purpose, nonce and request", () => {
  const statement = renewalStatement(Uint8Array.of(1, 2), Uint8Array.of(3));
  assertEquals(
    new TextDecoder().decode(statement.subarray(0, 13)),
    "tunnel renew\n",
  );
  assertEquals([...statement.subarray(13)], [1, 2, 3]);
});

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
