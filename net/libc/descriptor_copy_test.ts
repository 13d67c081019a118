import { assert, assertEquals } from "@std/assert";
import { copyDescriptor } from "./descriptors.ts";
import { openLibc } from "./libc.ts";

const F_GETFD = 1;
const FD_CLOEXEC = 1;

Deno.test({
  name: "a copy is another descriptor, and no child's",
  ignore: openLibc() === undefined,
  fn() {
    const library = openLibc()!;
    const copy = copyDescriptor(2);
    assert(copy > 2);
    assertEquals(library.fcntl(copy, F_GETFD, 0), FD_CLOEXEC);
    assertEquals(library.close(copy), 0);
  },
});
