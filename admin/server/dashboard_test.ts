import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { AdminRole } from "../../proto/admin/api.ts";
import { dashboardAnswer } from "./dashboard.ts";

async function get(
  path: string,
  role?: AdminRole,
  headers: Readonly<Record<string, string>> = {},
  method = "GET",
): Promise<Response> {
  const request = new Request(`http://x${path}`, { headers, method });
  const who = () => role && { role, name: "alice" };
  return (await dashboardAnswer(request, who))!;
}

async function scriptName(): Promise<string> {
  const html = await (await get("/dashboard/", "view")).text();
  return /src="(page\.[0-9a-f]+\.js)"/.exec(html)![1]!;
}

Deno.test("who is not known is told the command, and nothing else", async () => {
  const answer = await get("/dashboard/");
  assertEquals(answer.status, 401);
  const html = await answer.text();
  assertStringIncludes(html, "tunnel dashboard");
  assert(!html.includes(`id="app"`));
});

Deno.test("the page knows what its login may do", async () => {
  for (const role of ["view", "operate"] as const) {
    const answer = await get("/dashboard/", role);
    assertEquals(answer.status, 200);
    assertStringIncludes(await answer.text(), `data-role="${role}"`);
    assertEquals(answer.headers.get("cache-control"), "no-store");
  }
});

Deno.test("nothing runs in it that is not its script", async () => {
  const answer = await get("/dashboard/", "operate");
  const policy = answer.headers.get("content-security-policy")!;
  assertStringIncludes(policy, "default-src 'self'");
  assert(!policy.includes("unsafe"));
  const html = await answer.text();
  assert(!/<script(?![^>]* src=)/.test(html) && !html.includes("style="));
  assertEquals(answer.headers.get("x-content-type-options"), "nosniff");
});

Deno.test("what never changes is kept by browsers, and sent packed", async () => {
  const path = `/dashboard/${await scriptName()}`;
  const packed = await get(path, undefined, {
    "accept-encoding": "gzip, br",
  });
  assertEquals(packed.headers.get("content-encoding"), "gzip");
  assertEquals(
    packed.headers.get("content-type"),
    "text/javascript; charset=utf-8",
  );
  assertStringIncludes(packed.headers.get("cache-control")!, "immutable");
  assert((await packed.arrayBuffer()).byteLength < 60_000);
  const etag = packed.headers.get("etag")!;
  const again = await get(path, undefined, { "if-none-match": etag });
  assertEquals([again.status, await again.text()], [304, ""]);
  const plain = await get(path);
  assertEquals(plain.headers.get("content-encoding"), null);
  assert((await plain.text()).length > 60_000);
});

Deno.test("other paths are others', other methods are refused", async () => {
  const request = new Request("http://x/metrics");
  assertEquals(await dashboardAnswer(request, () => undefined), undefined);
  assertEquals((await get("/dashboard/none.js")).status, 404);
  assertEquals((await get("/dashboard/constructor")).status, 404);
  const moved = await get("/dashboard");
  assertEquals([moved.status, moved.headers.get("location")], [
    308,
    "/dashboard/",
  ]);
  const post = await get("/dashboard/", "operate", {}, "POST");
  assertEquals(post.status, 405);
});
