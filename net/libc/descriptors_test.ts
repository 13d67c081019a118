import { assertEquals } from "@std/assert";
import { descriptorsLeft, mayTakeDescriptor } from "./descriptors.ts";

Deno.test("callers leave descriptors to links, and those to health", () => {
  const left = (limit: number) =>
    (["caller", "link", "administration"] as const)
      .map((use) => descriptorsLeft(use, limit));
  assertEquals(left(64), [12, 6, 0]);
  assertEquals(left(256), [32, 16, 0]);
  assertEquals(left(1_048_576), [1_024, 512, 0]);
});

Deno.test("there are descriptors for everybody where there are many", () => {
  for (const use of ["caller", "link", "administration"] as const) {
    assertEquals(mayTakeDescriptor(use), true);
  }
});
