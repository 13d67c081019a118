import { assertEquals } from "@std/assert";
import { stale } from "./reference.ts";

Deno.test("pages and dashboards say what the tables of the code say", async () => {
  assertEquals(await stale(), [], "Run: deno task reference");
});
