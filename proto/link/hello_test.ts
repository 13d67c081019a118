import { assert, assertEquals } from "@std/assert";
import { versionProblem } from "./hello.ts";

Deno.test("versions N and N−1 work together, whichever end is newer", () => {
  for (let ours = 1; ours <= 4; ours++) {
    for (let theirs = 0; theirs <= 6; theirs++) {
      const works = theirs >= 1 && Math.abs(ours - theirs) <= 1;
      const problem = versionProblem(theirs, "server", ours);
      assertEquals(problem === undefined, works, `${ours} with ${theirs}`);
      if (theirs > 0) {
        const seen = versionProblem(ours, "agent", theirs) === undefined;
        assertEquals(seen, works, "both ends come to the same decision");
      }
    }
  }
});

Deno.test("a version refused is named, as is ours", () => {
  const problem = versionProblem(9, "agent", 4)!;
  assert(problem.includes("the agent speaks link version 9"));
  assert(problem.includes("this end speaks version 4"));
});
