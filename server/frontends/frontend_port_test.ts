import { assert, assertEquals } from "@std/assert";
import { readToEnd, tcpPair } from "../../tests/support/peers/sockets.ts";
import { denoStream } from "../../net/stream/platform_stream.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { GrpcRouter } from "../../proto/grpc/server.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { FrontendMode } from "../options.ts";
import { FrontendPort } from "./frontend_port.ts";

/** What a frontend in `mode` answers to `words`, to the end, and counts. */
async function answerTo(mode: FrontendMode, words: string) {
  const { port, turnedAway } = frontend(mode);
  const [client, accepted] = await tcpPair();
  port.accept(denoStream(accepted));
  await client.write(new TextEncoder().encode(words));
  const answer = new TextDecoder().decode(await readToEnd(client));
  client.close();
  return { answer, turnedAway };
}

function frontend(mode: FrontendMode) {
  const turnedAway: string[] = [];
  const port = new FrontendPort({
    mode,
    timers: systemTimers,
    keepaliveMs: 3_600_000,
    receiveBudget: new ReceiveBudget(),
    routerFor: () => new GrpcRouter({ methods: {}, timers: systemTimers }),
    connect: {
      timers: systemTimers,
      dial: () => ({ cancel: () => {} }),
      join: () => {},
      refused: () => {},
    },
    turnedAway: (_remote, reason) => turnedAway.push(reason),
    counted: () => {},
  });
  return { port, turnedAway };
}

Deno.test("bytes of no protocol get HTTP/2's error where HTTP/2 is served", async () => {
  for (const mode of ["grpc", "auto"] as const) {
    const { answer, turnedAway } = await answerTo(mode, "INVALID PREFACE\r\n");
    assert(!answer.startsWith("HTTP/1.1"), answer);
    assert(answer.includes("Cannot accept the connection preface"), answer);
    assertEquals(turnedAway.length, 1);
  }
});

Deno.test("others are answered in HTTP/1.1", async () => {
  const cases = [
    ["http-connect", "INVALID PREFACE\r\n"],
    ["http-connect", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["grpc", "CONNECT a:1 HTTP/1.1\r\n\r\n"],
  ] as const;
  for (const [mode, words] of cases) {
    const { answer, turnedAway } = await answerTo(mode, words);
    assert(answer.startsWith("HTTP/1.1 400 Cannot serve "), answer);
    assertEquals(turnedAway.length, 1);
  }
});

Deno.test("who comes at the very end hears at once to go elsewhere", async () => {
  const { port } = frontend("auto");
  const [client, accepted] = await tcpPair();
  port.finish("the server is stopping");
  port.accept(denoStream(accepted));
  const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const settings = "\0\0\0\x04\0\0\0\0\0";
  await client.write(new TextEncoder().encode(preface + settings));
  const chunk = new Uint8Array(4_096);
  let answer = "";
  while (!answer.includes("the server is stopping")) {
    const count = await client.read(chunk);
    assert(count !== null, answer);
    answer += new TextDecoder().decode(chunk.subarray(0, count));
  }
  client.close();
});
