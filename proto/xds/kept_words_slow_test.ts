/**
 * What stays in memory of the words of a client that refuses everything, each
 * thing in other words.
 */

import { assert, assertEquals } from "@std/assert";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { ErrorDetail } from "./discovery.ts";
import { ERROR_MESSAGE_MAX, RequestDecoder } from "./request_decoder.ts";
import { DiscoveryRequestMessage } from "./xds_messages.ts";

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
