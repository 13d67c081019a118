import { assert, assertEquals } from "@std/assert";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { ErrorDetail } from "./discovery.ts";
import { ERROR_MESSAGE_MAX, RequestDecoder } from "./request_decoder.ts";
import { DiscoveryRequestMessage } from "./xds_messages.ts";

/**
 * What stays in memory of the words of a client that refuses everything, each
 * thing in other words.
 */

Deno.test("of long words the kept page is all that stays in memory", () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const decoder = new RequestDecoder();
  const bytes = DiscoveryRequestMessage.encode({
    errorDetail: { code: 3, message: "m".repeat(2_000_000) },
  });
  const kept: (ErrorDetail | undefined)[] = [];
  collect();
  const before = Deno.memoryUsage().heapUsed;
  for (let time = 0; time < 50; time++) {
    kept.push(decoder.decode("sotw", bytes).errorDetail);
  }
  collect();
  // V8 keeps what a slice is of: that would be 100 MB.
  const grown = Deno.memoryUsage().heapUsed - before;
  assert(grown < 20_000_000, `${grown} bytes`);
  assertEquals(kept.at(-1)?.message.length, ERROR_MESSAGE_MAX);
});

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
