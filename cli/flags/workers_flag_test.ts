import { assertEquals, assertThrows } from "@std/assert";
import { FlagValueError } from "./flag.ts";
import { WORKERS_MAX } from "../../admin/ask/worker_sockets.ts";
import { workerCount } from "./program_flags.ts";

Deno.test("workers are counted, or as many as there are cores", () => {
  assertEquals(workerCount("1"), 1);
  assertEquals(workerCount("64"), WORKERS_MAX);
  assertEquals(workerCount("auto", 3), 3);
  assertEquals(workerCount("auto", 0), 1);
  assertEquals(workerCount("auto", 128), WORKERS_MAX);
});

for (const text of ["0", "-1", "65", "1.5", "all", ""]) {
  Deno.test(`--workers=${text} is refused`, () => {
    assertThrows(
      () => workerCount(text),
      FlagValueError,
      "wanted a whole number from 1 to 64, or auto",
    );
  });
}
