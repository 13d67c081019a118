import { assert, assertEquals } from "@std/assert";

Deno.test("too many open files is reported as such, and passes", async () => {
  const script = `
    import { dialTarget } from ${
    JSON.stringify(import.meta.resolve("./dial.ts"))
  };
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const target = { protocol: "tcp", address: "127.0.0.1:" + listener.addr.port };
    const files = [];
    try { for (;;) files.push(Deno.openSync("/dev/null")); } catch {}
    await dialTarget(target).catch((error) => console.log(error.message));
    for (const file of files) file.close();
    await dialTarget(target);
    console.log("recovered");
    Deno.exit();
  `;
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(file, script);
  const command = new Deno.Command("sh", {
    // Hard and soft: the runtime raises the soft limit to the hard one.
    args: [
      "-c",
      'ulimit -n 64; exec "$0" run -A --no-check --quiet --config "$1" "$2"',
      Deno.execPath(),
      new URL("../../deno.json", import.meta.url).pathname,
      file,
    ],
    stderr: "inherit",
  });
  const { stdout } = await command.output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  assert(lines[0]!.endsWith("socket: too many open files"), lines[0]);
  assertEquals(lines[1], "recovered");
  await Deno.remove(file);
});
