import { assertEquals } from "@std/assert";
import { FakeServerCall } from "../../tests/support/memory/fake_server_call.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import {
  IDENTITY_METHODS,
  StandingAnswer,
  StandingRequest,
} from "../../proto/identity/identity_messages.ts";
import type { LinkRefusal } from "../../proto/link/link.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import type { LinkCandidate } from "../../proto/link/link.ts";
import { standingMethods } from "./standing_service.ts";

async function ask(identifiers: string, refusal?: LinkRefusal) {
  const asked: LinkCandidate[] = [];
  const methods = standingMethods({
    serverId: "s1",
    wallClock: () => 0,
    admit: (candidate) => {
      asked.push(candidate);
      return refusal;
    },
    linksOf: () => [new FakeLink("edge-7"), new FakeLink("edge-7")],
    instancesOf: () => 2,
  }, { identity: ANONYMOUS, remoteAddress: "192.0.2.9:4711" });
  const call = new FakeServerCall();
  call.begin(methods[IDENTITY_METHODS.standing]!);
  call.receive(StandingRequest.encode({
    agentId: "edge-7",
    identifiers,
    token: "t",
    software: "test",
  }));
  call.halfClose();
  while (call.status === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  const [message] = call.messages;
  return {
    asked,
    status: call.status.code,
    ...message === undefined ? {} : { answer: StandingAnswer.decode(message) },
  };
}

Deno.test("who would be let in is told from where its agent is linked", async () => {
  const { answer, asked } = await ask("host=edge-7");
  assertEquals(answer, {
    refusal: "",
    code: "",
    serverId: "s1",
    now: "1970-01-01T00:00:00.000Z",
    linkedFrom: ["10.0.0.7:4711", "10.0.0.7:4711"],
    instances: 2,
  });
  assertEquals(asked[0]!.peer.remoteAddress, "192.0.2.9:4711");
  assertEquals(asked[0]!.token, "t");
});

Deno.test("who would not is told why, and nothing of others", async () => {
  const { answer } = await ask("", {
    code: StatusCode.PERMISSION_DENIED,
    message: "Cannot admit edge-7: the node was revoked",
  });
  assertEquals(answer?.refusal, "Cannot admit edge-7: the node was revoked");
  assertEquals([answer?.linkedFrom, answer?.instances], [[], 0]);
});

Deno.test("identifiers that cannot be read are the caller's mistake", async () => {
  const { status, asked } = await ask("%%%=1");
  assertEquals(status, StatusCode.INVALID_ARGUMENT);
  assertEquals(asked, []);
});
