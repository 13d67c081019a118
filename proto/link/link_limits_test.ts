import { assertEquals } from "@std/assert";
import { enginePair } from "../../tests/support/memory/engine_pair.ts";
import {
  requestFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { LINK_CONDUITS_MAX, LINK_LIMITS } from "./link_limits.ts";

Deno.test("a server may give up thousands of dials at once, crossing their answers", () => {
  const settings = { maxConcurrentStreams: LINK_CONDUITS_MAX };
  const limits = LINK_LIMITS;
  const { client, server, pipe } = enginePair({
    client: { limits },
    server: { settings, limits },
  });
  const logs = Array.from({ length: 20_000 }, () => {
    const log = new StreamLog();
    log.stream = client.connection.openStream(requestFields(), false, log);
    return log;
  });
  pipe.settle();
  for (const { stream } of server.accepted.slice(0, 10_000)) {
    stream!.sendHeaders([{ name: ":status", value: "200" }], false);
  }
  for (const { stream } of logs) stream!.reset(ErrorCode.CANCEL);
  pipe.settle();
  assertEquals([client.ends, server.ends], [[], []]);
  assertEquals(server.connection.openStreams, 0);
});
