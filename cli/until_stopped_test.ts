import { assertEquals } from "@std/assert";
import { untilStopped } from "./until_stopped.ts";

Deno.test("the first signal asks, the second one ends", async () => {
  const told: string[] = [];
  const listeners = new Map<string, () => void>();
  const finished = Promise.withResolvers<void>();
  const stopped = untilStopped({
    finished: finished.promise,
    shutdown: () => told.push("shutdown"),
    stop: (reason) => {
      told.push(reason);
      finished.resolve();
    },
    reload: () => told.push("reload"),
  }, {
    addSignalListener: (signal, listener) => listeners.set(signal, listener),
    removeSignalListener: (signal) => listeners.delete(signal),
  });
  listeners.get("SIGHUP")!();
  assertEquals(told.splice(0), ["reload"]);
  listeners.get("SIGTERM")!();
  assertEquals(told, ["shutdown"]);
  listeners.get("SIGINT")!();
  await stopped;
  assertEquals(told, ["shutdown", "a second signal came"]);
  assertEquals(listeners.size, 0);
});
