import { assertEquals } from "@std/assert";
import { StatusCode } from "../../proto/grpc/status.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import {
  ADMITTED,
  anonymousAuthorizer,
  authorize,
  type Authorizer,
  refuse,
} from "./authorizer.ts";
import { FakeServerCall } from "../../tests/support/memory/fake_server_call.ts";
import {
  IDENTITY_METHODS,
  StandingAnswer,
  StandingRequest,
} from "../../proto/identity/identity_messages.ts";
import type { LinkCandidate, LinkRefusal } from "../../proto/link/link.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import { standingMethods } from "./standing_service.ts";

const { peer } = new FakeLink("a");
const CANDIDATE = { peer, token: "" };
const abstain: Authorizer = () => undefined;
const late = (authorizer: Authorizer): Authorizer => (candidate) =>
  Promise.resolve(authorizer(candidate)) as ReturnType<Authorizer>;

Deno.test("the first authorizer that decides is asked, and none after it", () => {
  const decision = authorize(
    [abstain, () => ADMITTED, () => refuse("no")],
    CANDIDATE,
  );
  assertEquals(decision, undefined);
});

Deno.test("an authorizer may take its time, and the next ones wait for it", async () => {
  const authorizers = [late(abstain), abstain, late(() => refuse("no"))];
  const decision = authorize(authorizers, CANDIDATE);
  assertEquals(decision instanceof Promise, true);
  const { message, code } = (await decision)!;
  assertEquals([message, code], ["no", StatusCode.PERMISSION_DENIED]);
  const kind = authorize([late(abstain), () => ADMITTED], CANDIDATE);
  assertEquals(await kind, undefined);
});

Deno.test("whom nobody vouches for is refused", async () => {
  for (const authorizers of [[], [abstain], [late(abstain)]]) {
    const decision = await authorize(authorizers, CANDIDATE);
    assertEquals(decision?.code, StatusCode.UNAUTHENTICATED);
  }
});

Deno.test("a peer that shows nothing receives what to do", async () => {
  const refused = await authorize(
    [anonymousAuthorizer(false, "wanted one of ours")],
    CANDIDATE,
  );
  assertEquals(
    refused?.message,
    "Cannot admit this agent: it showed no certificate, wanted one of ours",
  );
  const allowed = authorize([anonymousAuthorizer(true, "")], CANDIDATE);
  assertEquals(allowed, undefined);
});

Deno.test("who shows nothing is called as a node may be, as Konnectivity's agents are", () => {
  const admitted = (agentId: string) =>
    authorize([anonymousAuthorizer(true, "")], {
      peer: { ...peer, agentId },
      token: "",
    }) === undefined;
  for (
    const id of [
      "0f8fad5b-d9cb-469f-a165-70867728950e",
      "ip-10-0-0-7.eu-west-1.compute.internal",
      "Edge-1",
      "node_7",
    ]
  ) assertEquals(admitted(id), true, id);
  for (
    const id of [
      ...["x$(touch FILE);y", "a b", "a|b", "`id`", "../x", "a\nb", "-rf"],
      ...["\u200bgw", "gw\u202e", "ünde", "tunnel-server", "", "a".repeat(201)],
    ]
  ) assertEquals(admitted(id), false, id);
});

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
