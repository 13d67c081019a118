import { assertEquals } from "@std/assert";

Deno.test("the first signal asks, the second insists, whichever they are", async () => {
  // In a process of its own: the test runner listens to these signals, too.
  const child = new Deno.Command(Deno.execPath(), {
    args: ["eval", CHILD, import.meta.resolve("./signals.ts")],
    stdout: "piped",
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const heard: string[] = [];
  for (const signal of ["SIGHUP", "SIGTERM", "SIGINT"] as const) {
    heard.push((await lines.read()).value!.trim());
    child.kill(signal);
  }
  heard.push((await lines.read()).value!.trim());
  assertEquals(heard, ["ready", "reload", "first SIGTERM", "second SIGINT"]);
  assertEquals((await child.status).code, 7);
  await lines.cancel();
});

const CHILD = `
const { onReloadSignal, onStopSignals } = await import(Deno.args[0]);
onReloadSignal(() => console.log("reload"));
onStopSignals({
  onFirst: (signal) => console.log("first " + signal),
  onSecond: (signal) => { console.log("second " + signal); Deno.exit(7); },
});
setInterval(() => {}, 1e6);
console.log("ready");
`;
