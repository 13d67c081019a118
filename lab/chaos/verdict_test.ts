import { assertEquals, assertMatch } from "@std/assert";
import { type Allowance, overAgent, overServer } from "./fault.ts";
import { Ledger, type Path } from "./ledger.ts";
import { judge } from "./verdict.ts";

const PATH: Path = {
  ...{ protocol: "grpc", target: "site", server: "s1", agent: "n3" },
};

function problems(
  fill: (ledger: Ledger) => void,
  allows: Allowance = {},
  backMs = 100,
): readonly string[] {
  const ledger = new Ledger();
  fill(ledger);
  const outcome = {
    ...{ name: "a fault", appliedMs: 1, backMs, linkedMs: 100, problems: [] },
  };
  return judge(ledger, { ...outcome, allows }).problems;
}

function broken(path: Path = PATH, isEof = false) {
  const end = { atMs: 1, cause: "gone", lostBytes: 7, isEof };
  return (ledger: Ledger) => void ledger.breaks.push({ ...end, path });
}

function failed(path: Path = PATH) {
  const attempts = [{ server: "s1", cause: "no" }];
  const dial = { atMs: 1, tookMs: 9, attempts, isGood: false };
  return (ledger: Ledger) => void ledger.dials.push({ ...dial, path });
}

Deno.test("a fault that nobody felt costs nothing", () => {
  assertEquals(problems(() => {}), []);
});

Deno.test("a conduit may break where its path died, and nowhere else", () => {
  assertMatch(problems(broken()).join(), /grpc of s1 to site over n3 broke/);
  assertEquals(problems(broken(), { mayBreak: overAgent("n3") }), []);
  assertEquals(problems(broken(), { mayBreak: overAgent("n4") }).length, 1);
  assertEquals(problems(broken(), { mayBreak: overServer("s1") }), []);
  // Who chose its server itself may have chosen that one.
  const { server: _, ...unknown } = PATH;
  assertEquals(problems(broken(unknown), { mayBreak: overServer("s2") }), []);
});

Deno.test("a loss that looks like an end is one, but over sockets that have no other word", () => {
  const mayBreak = overAgent("n3");
  const eof = (path: Path) => problems(broken(path, true), { mayBreak });
  assertMatch(eof(PATH).join(), /7 bytes were lost .* looked clean/);
  assertEquals(eof({ ...PATH, protocol: "connect" }), []);
});

Deno.test("a dial may fail where there is no way, and nowhere else", () => {
  assertMatch(
    problems(failed()).join(),
    /a dial by grpc .* failed, begun 0 ms before .*: s1: no/,
  );
  assertEquals(problems(failed(), { mayFail: ["site"] }), []);
  assertEquals(problems(failed(), { mayFail: ["n1"] }).length, 1);
  assertEquals(problems(failed(), { mayFailBy: ["grpc"] }), []);
  assertEquals(problems(failed(), { underWay: ["grpc"] }), []);
  const later = (ledger: Ledger) => {
    failed()(ledger);
    ledger.dials.push({ ...ledger.dials.pop()!, atMs: 2 });
  };
  assertEquals(problems(later, { underWay: ["grpc"] }).length, 1);
});

Deno.test("what takes too long is said, unless it may", () => {
  const record = { atMs: 1, tookMs: 6_000, path: PATH };
  const stall = (ledger: Ledger) => void ledger.stalls.push(record);
  const dial = (ledger: Ledger) =>
    void ledger.dials.push({ ...record, attempts: [], isGood: true });
  assertMatch(problems(stall).join(), /stood still for 6000 ms/);
  assertEquals(problems(stall, { mayStand: overAgent("n3") }), []);
  assertEquals(problems(stall, { stallMs: 7_000 }), []);
  assertMatch(problems(dial).join(), /a dial by grpc of s1 .* over in 6000 ms/);
  assertEquals(problems(dial, { mayWait: ["site"] }), []);
  assertMatch(problems(() => {}, {}, Infinity).join(), /not well 10000 ms/);
});

Deno.test("wrong bytes are allowed to nobody", () => {
  const allows = { mayBreak: () => true, mayFail: ["site"] };
  const wrong = (ledger: Ledger) =>
    void ledger.wrong.push({ atMs: 1, path: PATH, offset: 5 });
  assertMatch(problems(wrong, allows).join(), /wrong bytes at 5/);
});
