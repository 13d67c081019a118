import { assertEquals } from "@std/assert";
import { figuresTable, median, PICTURE, progressBar } from "./story.ts";

const MIB = 1024 * 1024;

Deno.test("progressBar() keeps its width from nothing to all", () => {
  const widths = [0, 1, 128 * MIB, 256 * MIB].map((done) =>
    progressBar(done, 256 * MIB, 1000).length
  );
  assertEquals(new Set(widths).size, 1);
  assertEquals(widths[0]! < 80, true);
  assertEquals(
    progressBar(128 * MIB, 256 * MIB, 1000),
    "  ████████████████░░░░░░░░░░░░░░░░  128 of 256 MiB     134 MB/s",
  );
});

Deno.test("figuresTable() lines its columns up", () => {
  const row = { requests: 20, requestsMs: [1, 3, 2], bulkBytes: 64 * MIB };
  assertEquals(
    figuresTable([
      { ...row, path: "gRPC → alpha", bulkMs: 100 },
      { ...row, path: "CONNECT → beta", bulkMs: 1000 },
    ]),
    "  path             requests    bytes   MB/s      p50\n" +
      "  gRPC → alpha           20   64 MiB    671   2.0 ms\n" +
      "  CONNECT → beta         20   64 MiB     67   2.0 ms",
  );
});

Deno.test("the picture fits on 80 columns", () => {
  for (const line of PICTURE.split("\n")) {
    assertEquals(line.length <= 80, true, line);
  }
});

Deno.test("median() takes the middle of an unsorted list", () => {
  assertEquals(median([5, 1, 3]), 3);
  assertEquals(median([4, 1, 3, 2]), 3);
  assertEquals(median([]), NaN);
});
