import { assertEquals } from "@std/assert";
import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";
import { guardNames } from "../listen/listeners.ts";

async function statusFor(bound: string, host: string): Promise<number> {
  const handler = guardNames(bound, () => new Response("secrets"));
  const request = new Request(`http://${host}/debug/syncz`);
  return (await handler(request, new ScriptedStream())).status;
}

Deno.test("a port of loopback answers by address and as localhost, and to no page's own name", async () => {
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [bound: string, host: string, status: number])[] = [
    ["127.0.0.1", "127.0.0.1:8095",       200],
    ["127.0.0.1", "localhost:8095",       200],
    ["127.0.0.1", "LocalHost",            200],
    ["::1",       "[::1]:8095",           200],
    ["127.0.0.1", "evil.example:8095",    421],
    ["127.0.0.1", "127.0.0.1.nip.io",     421],
    ["::1",       "localhost.evil.example", 421],
    ["0.0.0.0",   "admin.example:8095",   200],
    ["::",        "admin.example:8095",   200],
  ];
  for (const [bound, host, status] of cases) {
    assertEquals(await statusFor(bound, host), status, `${bound} ${host}`);
  }
});
