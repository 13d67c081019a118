import { assertEquals, assertRejects } from "@std/assert";
import { codeOf } from "../../platform/errors/error_code.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { connectToHost } from "./connect_host.ts";
import { LookupError, type Resolver } from "../names/resolver.ts";

const NEVER = new AbortController().signal;
const options = (addresses: readonly string[]) => ({
  timers: systemTimers,
  signal: NEVER,
  resolver: { lookup: () => Promise.resolve(addresses) },
});

Deno.test("an address is not looked up, a name is", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  for (const host of ["127.0.0.1", "server.example"]) {
    const [accepted, socket] = await Promise.all([
      listener.accept(),
      // Nobody listens on the first one.
      connectToHost(host, port, options(["127.0.0.2", "127.0.0.1"])),
    ]);
    assertEquals(socket.remoteAddress, `127.0.0.1:${port}`);
    socket.close();
    accepted.close();
  }
});

Deno.test("what fails is reported as it was", async () => {
  const unused = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = unused.addr;
  unused.close();
  const refused = await assertRejects(() =>
    connectToHost("server.example", port, options(["127.0.0.1"]))
  );
  assertEquals(codeOf(refused), "ECONNREFUSED");
  const nobody: Resolver = {
    lookup: (host) => Promise.reject(new LookupError(host)),
  };
  await assertRejects(
    () =>
      connectToHost("nobody.example", 1, { ...options([]), resolver: nobody }),
    LookupError,
    "no such host",
  );
});

Deno.test("a resolver that says nothing is not waited for", async () => {
  const controller = new AbortController();
  const connecting = connectToHost("silent.example", 1, {
    timers: systemTimers,
    signal: controller.signal,
    resolver: { lookup: () => new Promise(() => {}) },
  });
  controller.abort(new Error("enough"));
  await assertRejects(() => connecting, Error, "enough");
});
