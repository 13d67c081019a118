import { assertEquals } from "@std/assert";
import { StatusCode } from "../../proto/grpc/status.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import {
  ADMITTED,
  anonymousJudge,
  type Judge,
  judgeCandidate,
  refuse,
} from "./admission.ts";

const { peer } = new FakeLink("a");
const CANDIDATE = { peer, token: "" };
const abstain: Judge = () => undefined;
const late = (judge: Judge): Judge => (candidate) =>
  Promise.resolve(judge(candidate)) as ReturnType<Judge>;

Deno.test("the first judge who decides is heard, and nobody after it", () => {
  const verdict = judgeCandidate(
    [abstain, () => ADMITTED, () => refuse("no")],
    CANDIDATE,
  );
  assertEquals(verdict, undefined);
});

Deno.test("a judge may take its time, and the next ones wait for it", async () => {
  const judges = [late(abstain), abstain, late(() => refuse("no"))];
  const verdict = judgeCandidate(judges, CANDIDATE);
  assertEquals(verdict instanceof Promise, true);
  const { message, code } = (await verdict)!;
  assertEquals([message, code], ["no", StatusCode.PERMISSION_DENIED]);
  const kind = judgeCandidate([late(abstain), () => ADMITTED], CANDIDATE);
  assertEquals(await kind, undefined);
});

Deno.test("whom nobody vouches for is refused", async () => {
  for (const judges of [[], [abstain], [late(abstain)]]) {
    const verdict = await judgeCandidate(judges, CANDIDATE);
    assertEquals(verdict?.code, StatusCode.UNAUTHENTICATED);
  }
});

Deno.test("who shows nothing is told what to do", async () => {
  const refused = await judgeCandidate(
    [anonymousJudge(false, "wanted one of ours")],
    CANDIDATE,
  );
  assertEquals(
    refused?.message,
    "Cannot admit this agent: it showed no certificate, wanted one of ours",
  );
  const allowed = judgeCandidate([anonymousJudge(true, "")], CANDIDATE);
  assertEquals(allowed, undefined);
});
