import { assert, assertEquals } from "@std/assert";
import { SCRIPT, SOURCES, STYLE } from "../admin/server/generated_page.ts";
import { PAGE_BYTES_MAX, smallerStyle, sourcesHash } from "./dashboard_page.ts";

Deno.test("the dashboard that is served is made of its sources", async () => {
  assertEquals(SOURCES, await sourcesHash(), "run `deno task dashboard`");
});

Deno.test("the dashboard is small, and has nothing of other hosts", () => {
  assert(SCRIPT.length + STYLE.length <= PAGE_BYTES_MAX);
  const hosts = [...`${SCRIPT}${STYLE}`.matchAll(/https?:\/\/([\w.-]+)/g)]
    .map(([, host]) => host).filter((host) => host !== "www.w3.org");
  assertEquals(hosts, []);
});

Deno.test("a style sheet loses what browsers do not need", () => {
  assertEquals(
    smallerStyle("/* Why. */\na,\nb {\n  color: red;\n  margin: 0 1px;\n}\n"),
    "a,b{color:red;margin:0 1px}",
  );
});
