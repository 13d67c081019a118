import { assert, assertEquals } from "@std/assert";
import {
  BENCH_LINE_BYTES_MAX,
  benchAnswer,
  BenchLineReader,
  benchRequest,
  nextReportAt,
  parseBenchAnswer,
  parseBenchRequest,
} from "./bench_wire.ts";

const text = (bytes: Uint8Array) =>
  new TextDecoder().decode(bytes).replace(/\n$/, "");

Deno.test("requests of a bench come back as they were", () => {
  for (const service of ["echo", "source", "discard"] as const) {
    assertEquals(parseBenchRequest(text(benchRequest(service))), service);
  }
  for (const line of ["", "tunnel-bench/1 chargen", "tunnel-bench/2 echo"]) {
    assertEquals(parseBenchRequest(line), undefined);
  }
});

Deno.test("an answer carries any agent id", () => {
  for (const agentId of ["node7", "", "a b\n%c", "Zürich"]) {
    const host = { agentId, software: "tunnel/0.1.0" };
    assertEquals(parseBenchAnswer(text(benchAnswer(host))), host);
  }
});

Deno.test("what is no answer is none", () => {
  const lines = [
    "HTTP/1.1 400 Bad Request",
    "tunnel-bench/1 ok",
    "tunnel-bench/1 ok one",
    "tunnel-bench/1 ok one two three",
    "tunnel-bench/1 no one two",
    "tunnel-bench/1 ok %zz two",
  ];
  for (const line of lines) assertEquals(parseBenchAnswer(line), undefined);
});

Deno.test("lines are the same wherever they are cut", () => {
  const bytes = new TextEncoder().encode("first\nsecond\n");
  for (let cut = 0; cut <= bytes.length; cut++) {
    const reader = new BenchLineReader();
    const lines: (string | undefined)[] = [];
    for (let chunk of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
      while (chunk.length > 0) {
        const line = reader.push(chunk);
        if (line === undefined) break;
        lines.push(line.text);
        chunk = chunk.subarray(line.taken);
      }
    }
    assertEquals(lines, ["first", "second"], `cut at ${cut}`);
  }
});

Deno.test("a line without end is given up at its limit", () => {
  const reader = new BenchLineReader();
  const chunk = new Uint8Array(BENCH_LINE_BYTES_MAX).fill(0x61);
  assertEquals(reader.push(chunk), undefined);
  assertEquals(reader.push(chunk.subarray(0, 1)), {
    text: undefined,
    taken: 1,
  });
});

Deno.test("reports of a terabyte are few, of a megabyte fine", () => {
  let reports = 0;
  for (let bytes = 0; bytes < 1e12; reports++) bytes = nextReportAt(bytes);
  assert(reports < 3_000, `${reports}`);
  assert(nextReportAt(1e6) - 1e6 < 1e4);
});
