import { assertEquals } from "@std/assert";
import { formatBytes, parseBytes, parseGoBool } from "./go_values.ts";

Deno.test("parseGoBool() reads Go's spellings and no others", () => {
  for (const text of ["1", "t", "T", "true", "TRUE", "True"]) {
    assertEquals(parseGoBool(text), true, text);
  }
  for (const text of ["0", "f", "F", "false", "FALSE", "False"]) {
    assertEquals(parseGoBool(text), false, text);
  }
  for (const text of ["yes", "no", "tRUE", "2", " true"]) {
    assertEquals(parseGoBool(text), undefined, text);
  }
});

Deno.test("parseBytes() reads plain numbers and binary units", () => {
  assertEquals(parseBytes("4194304"), 4_194_304);
  assertEquals(parseBytes("4MiB"), 4_194_304);
  assertEquals(parseBytes("4MB"), undefined);
  assertEquals(parseBytes("-1"), undefined);
  assertEquals(formatBytes(16 * 1024 * 1024), "16MiB");
  assertEquals(formatBytes(1000), "1000");
});
