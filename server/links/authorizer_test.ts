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
