import { assertEquals } from "@std/assert";
import { visit } from "./dashboard.ts";

const LINK = "http://127.0.0.1:1/dashboard/#code=abc";
const OURS = Deno.uid() ?? -1;

async function came(url: string, method = "GET"): Promise<[number, string]> {
  const response = await fetch(url, { method, redirect: "manual" });
  await response.body?.cancel();
  return [response.status, response.headers.get("location") ?? ""];
}

Deno.test({
  name: "a browser of this user is sent on, and its command line has no code",
  ignore: Deno.build.os !== "linux",
  async fn() {
    let seen: unknown[] = [];
    const isOpened = await visit(LINK, {
      users: [OURS],
      async open(url) {
        seen = [
          /^http:\/\/127\.0\.0\.1:\d+\/$/.test(url),
          await came(`${url}favicon.ico`),
          await came(url, "POST"),
          await came(url),
        ];
        return true;
      },
    });
    assertEquals(isOpened, true);
    assertEquals(seen, [true, [404, ""], [404, ""], [303, LINK]]);
  },
});

Deno.test({
  name: "another user who read the command line is told nothing",
  ignore: Deno.build.os !== "linux",
  async fn() {
    let seen: unknown;
    const isOpened = await visit(LINK, {
      users: [OURS + 1],
      timeoutMs: 1,
      async open(url) {
        seen = await came(url);
        return true;
      },
    });
    assertEquals([isOpened, seen], [false, [403, ""]]);
    const open = () => Promise.resolve(false);
    assertEquals(await visit(LINK, { users: [OURS], open }), false);
  },
});
