import { assert, assertEquals } from "@std/assert";
import {
  copyDescriptor,
  descriptorsLeft,
  shareDescriptors,
} from "./descriptors.ts";
import { openLibc } from "./libc.ts";

Deno.test("listeners leave descriptors to callers, those to links, and those to health", () => {
  const left = (limit: number) =>
    (["listener", "caller", "link", "administration"] as const)
      .map((use) => descriptorsLeft(use, limit));
  assertEquals(left(64), [24, 12, 6, 0]);
  assertEquals(left(256), [64, 32, 16, 0]);
  assertEquals(left(1_048_576), [2_048, 1_024, 512, 0]);
  shareDescriptors(2);
  assertEquals(left(256), [160, 32, 16, 0]);
  shareDescriptors(1);
});

Deno.test({
  name: "a copy is another descriptor, and no child's",
  ignore: openLibc() === undefined,
  fn() {
    const [F_GETFD, FD_CLOEXEC] = [1, 1];
    const library = openLibc()!;
    const copy = copyDescriptor(2);
    assert(copy > 2);
    assertEquals(library.fcntl(copy, F_GETFD, 0), FD_CLOEXEC);
    assertEquals(library.close(copy), 0);
  },
});
