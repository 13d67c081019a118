import { assert, assertEquals } from "@std/assert";
import { PROGRAMS } from "../lab/lab.ts";
import { startable, type Step, STEPS } from "./ci_plan.ts";

const step = (name: string, weight: number, after?: string[]): Step => ({
  ...{ name, weight, words: [name] },
  ...after === undefined ? {} : { after },
});

const namesOf = (steps: readonly Step[]) => steps.map(({ name }) => name);

Deno.test("light steps begin beside each other, as many as the machine can bear", () => {
  const steps = [
    step("a", 0.6),
    step("b", 0.3),
    step("c", 0.3),
    step("d", 0.1),
  ];
  assertEquals(namesOf(startable(steps, [])), ["a", "b", "d"]);
  assertEquals(namesOf(startable([steps[2]!], [steps[0]!])), ["c"]);
});

Deno.test("who needs the whole machine waits for it, and is not passed for ever", () => {
  const [light, whole, later] = [step("a", 0.3), step("b", 1), step("c", 0.3)];
  assertEquals(namesOf(startable([light, whole, later], [])), ["a"]);
  assertEquals(namesOf(startable([whole, later], [light])), []);
  assertEquals(namesOf(startable([whole, later], [])), ["b"]);
});

Deno.test("a step begins after those that it needs", () => {
  const [one, two] = [step("a", 0.3), step("b", 0.3, ["a"])];
  assertEquals(namesOf(startable([one, two], [])), ["a"]);
  assertEquals(namesOf(startable([two], [one])), []);
  assertEquals(namesOf(startable([two], [])), ["b"]);
});

Deno.test("every step is a task, can begin, and has a name of its own", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile("deno.json"));
  assertEquals(new Set(namesOf(STEPS)).size, STEPS.length);
  const waiting = [...STEPS];
  while (waiting.length > 0) {
    const [next] = startable(waiting, []);
    assert(next !== undefined, `${namesOf(waiting)} never begin`);
    if (next.of !== "program") {
      const [task, program = ""] = next.words;
      assert(Object.hasOwn(tasks, task!), next.name);
      if (task === "lab") assert(Object.hasOwn(PROGRAMS, program), next.name);
    }
    waiting.splice(waiting.indexOf(next), 1);
  }
});
