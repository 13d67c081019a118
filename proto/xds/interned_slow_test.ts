import { assertEquals } from "@std/assert";

/** Prints what is known after clients with lists of their own have gone. */
const PROGRAM = `
  import { DiscoveryRequestMessage } from "${
  import.meta.resolve("./xds_messages.ts")
}";
  import { RequestDecoder } from "${
  import.meta.resolve("./request_decoder.ts")
}";
  const decoder = new RequestDecoder();
  const ask = (client) => decoder.decode("sotw", DiscoveryRequestMessage.encode({
    resourceNames: ["everybody's", "only of " + client],
  })).resourceNames;
  const kept = ask(0);
  let gone = [];
  for (let client = 1; client < 1000; client++) gone.push(ask(client));
  console.log(decoder.nameLists);
  gone = undefined;
  for (let turn = 0; turn < 100 && decoder.nameLists > 1; turn++) {
    // Values looked at in this turn live until its end.
    await new Promise((resolve) => setTimeout(resolve));
    globalThis.gc();
  }
  console.log(decoder.nameLists, ask(0) === kept);
`;

Deno.test("lists of names are forgotten with those who had them", async () => {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["eval", "--quiet", "--v8-flags=--expose-gc"],
      `--config=${new URL("../../deno.json", import.meta.url).pathname}`,
      PROGRAM,
    ],
    env: { NO_COLOR: "1" },
  }).output();
  const said = new TextDecoder().decode(stdout);
  assertEquals(said, "1000\n1 true\n", new TextDecoder().decode(stderr));
});
