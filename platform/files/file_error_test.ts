import { assertEquals } from "@std/assert";
import { systemProblem } from "./file_error.ts";

Deno.test("what the machine says about files becomes seen and remedy", async () => {
  const problemOf = (act: () => Promise<unknown>) =>
    act().then(() => "nothing", systemProblem);
  const me = import.meta.filename!;
  const fullDisk = Object.assign(new Error("os error 28"), { code: "ENOSPC" });
  assertEquals(
    await Promise.all([
      problemOf(() => Deno.readTextFile(`${me}.none`)),
      problemOf(() => Deno.readTextFile(`${me}/none`)),
      problemOf(() => Promise.reject(fullDisk)),
      problemOf(() => Promise.reject(new Error("another"))),
    ]),
    [
      "there is no such file",
      "a part of the path is no directory; name another one",
      "the disk is full; make room and try again",
      "another",
    ],
  );
});
