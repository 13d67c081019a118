import { assertEquals } from "@std/assert";
import type { PathStep } from "../../proto/admin/path_check.ts";
import { DOCTOR_COMMAND } from "./command.ts";
import { exitCodeOf, reportOf, reportText } from "./report.ts";
import { traceText } from "./trace.ts";
import { ran } from "../../tests/support/program/command_line.ts";

const STEPS: readonly PathStep[] = [
  { hop: "dns", outcome: "ok", message: "a is 192.0.2.7", tookMs: 12.3 },
  {
    hop: "tcp",
    outcome: "failed",
    message: "connection \u001b[31mrefused",
    code: "TUN401",
    remedy: "start it",
    tookMs: 4.2,
  },
  { hop: "tls", outcome: "skipped", message: "not reached: tcp failed" },
];

Deno.test("a report says the first fault, its remedy, and nothing to the terminal", () => {
  assertEquals(
    reportText(reportOf("agent", STEPS)),
    "agent:\n" +
      "  ok      dns   a is 192.0.2.7 (12 ms)\n" +
      "  FAILED  tcp   see below (4.2 ms)\n" +
      "  (1 more hop was not reached)\n" +
      "Wrong: tcp: connection \\u001b[31mrefused [TUN401]\n" +
      "Do: start it\n" +
      "More: tunnel explain TUN401\n",
  );
});

Deno.test("a warning fails nothing, a failure does", () => {
  const odd: PathStep = { hop: "x", outcome: "warning", message: "odd" };
  assertEquals(exitCodeOf([reportOf("a", [odd])]), 0);
  assertEquals(exitCodeOf([reportOf("a", [odd]), reportOf("b", STEPS)]), 1);
  const idle: PathStep = { ...odd, code: "TUN121" };
  assertEquals(exitCodeOf([reportOf("a", [idle])]), 1, "no server runs");
  const { fault } = reportOf("a", [odd, ...STEPS]);
  assertEquals(fault?.hop, "tcp", "what has failed comes before what is odd");
});

Deno.test("a trace has a bar for each hop that took time", () => {
  const text = traceText([
    { hop: "server", outcome: "ok", message: "answers", tookMs: 10 },
    { hop: "target", outcome: "ok", message: "connects", tookMs: 30 },
  ]);
  const [, first, second, sum] = text.split("\n");
  assertEquals(first!.match(/█+/)![0].length, 6);
  assertEquals(second!.match(/█+/)![0].length, 18);
  assertEquals(sum, "40.0 ms in all");
});

async function run(...argv: readonly string[]) {
  const readFile = () => {
    throw new Deno.errors.NotFound("no such file");
  };
  const { code, errors } = await ran(DOCTOR_COMMAND.run, argv, { readFile });
  return [code, errors] as const;
}

Deno.test("what doctor cannot examine is a mistake of the command line", async () => {
  for (
    const [argv, says] of [
      [["nodes"], /wanted server, agent, node NAME or target HOST:PORT/],
      [["node"], /tunnel doctor node NAME/],
      [["target"], /tunnel doctor target HOST:PORT/],
      [["agent", "--sever=a"], /did you mean --server/],
      [["server", "--agent-prt=1"], /did you mean --agent-port/],
      [["node", "a", "b"], /Unexpected word/],
    ] as const
  ) {
    const [code, error] = await run(...argv);
    assertEquals(code, 2, error);
    assertEquals(says.test(error), true, error);
  }
});
