import { assertEquals } from "@std/assert";
import { listenHttp } from "../../net/listen/listeners.ts";
import { localHealth } from "./running_program.ts";

const ANY = { hostname: "127.0.0.1", port: 0 };
const { signal } = new AbortController();

/** What is said of a program that answers so. */
async function saidOf(text: string) {
  const listener = listenHttp(ANY, () => new Response(text));
  const at = { ...ANY, port: listener.port };
  const finding = await localHealth(at, signal);
  listener.close();
  return finding;
}

Deno.test("a health port's answer is what is said of the program", async () => {
  assertEquals((await saidOf("[+]ping ok\n"))?.outcome, "ok");
  const lonely = await saidOf("[-]agent-connected failed: no agent\n");
  assertEquals(lonely?.code, "TUN501");
  assertEquals((await saidOf("[!]audit log: full\n"))?.outcome, "warning");
});

Deno.test("why a health port does not answer is said in words", async () => {
  const closed = Deno.listen(ANY);
  const { port } = closed.addr as Deno.NetAddr;
  closed.close();
  const finding = await localHealth({ ...ANY, port }, signal);
  assertEquals(
    finding?.message,
    `the program runs, and no process listens on its health port 127.0.0.1:${port}`,
  );
  const silent = Deno.listen(ANY);
  const at = { ...ANY, port: (silent.addr as Deno.NetAddr).port };
  const patience = new AbortController();
  const late = localHealth(at, patience.signal);
  const asked = await silent.accept();
  patience.abort(new DOMException("too late", "TimeoutError"));
  assertEquals(
    (await late)?.message,
    `the program runs, and its health port 127.0.0.1:${at.port} does not ` +
      "answer within 1.5 s",
  );
  asked.close();
  silent.close();
});
