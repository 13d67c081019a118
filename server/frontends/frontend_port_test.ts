import { join } from "../../proto/transfer/transfer.ts";
import { CallerLoads } from "../routing/caller_loads.ts";
import { assert, assertEquals } from "@std/assert";
import { readToEnd, tcpPair } from "../../tests/support/peers/sockets.ts";
import { denoStream } from "../../net/stream/platform_stream.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { GrpcRouter } from "../../proto/grpc/server.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { FrontendMode } from "../options.ts";
import { FrontendPort } from "./frontend_port.ts";
import { sniffProtocol } from "./first_look.ts";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import { NODE_FIELD, TWO_NODES } from "../../proto/link/dial_wishes.ts";
import { dialProxy } from "../../proto/link/proxy_client.ts";
import type { DialError } from "../../proto/peer/dial_error.ts";
import { SILENT_OBSERVER } from "../../proto/link/link.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  certifiedCaller,
  socketCaller,
} from "../../tests/support/memory/fake_caller.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { frontendRouter } from "./grpc_frontend.ts";
import { NodeFrontend } from "./node_frontend.ts";
import { PROXY_PATH } from "../../proto/link/capabilities.ts";

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

const encode = (text: string) => new TextEncoder().encode(text);

Deno.test("sniffProtocol() waits on every strict prefix of the preface", () => {
  const preface = "PRI * HTTP/2.0\r\n";
  for (let size = 0; size < preface.length; size++) {
    assertEquals(sniffProtocol(encode(preface.slice(0, size))), undefined);
  }
  assertEquals(sniffProtocol(encode(preface + "\r\nSM")), "http2");
});

Deno.test("sniffProtocol() knows HTTP/1 by its method, as much as there is", () => {
  for (const text of ["C", "CONNECT a:1", "GET /", "PA", "POST /", "PUT /"]) {
    assertEquals(sniffProtocol(encode(text)), "http1", text);
  }
  for (const text of ["INVALID ", "hello", "get /", "PRx", "GETTING /"]) {
    assertEquals(sniffProtocol(encode(text)), "unknown", text);
  }
});

Deno.test("sniffProtocol() names TLS and gives up on anything else", () => {
  assertEquals(sniffProtocol(Uint8Array.of(0x16, 3, 1)), "tls");
  assertEquals(sniffProtocol(Uint8Array.of(0)), "unknown");
  assertEquals(sniffProtocol(encode("\r\n")), "unknown");
});

const OPTIONS = {
  timers: new FakeTimers(),
  observer: SILENT_OBSERVER,
  messageBytesMax: 1024,
  dial: () => {
    throw new Error("It was dialed");
  },
};

async function refusalOf(router: GrpcRouter): Promise<DialError | undefined> {
  const { timers } = OPTIONS;
  const pair = new ConnectionPair({
    clock: timers,
    onStream: (stream) => router.accept(stream),
  });
  const metadata = new Metadata({ [NODE_FIELD]: "edge-1" });
  metadata.add(NODE_FIELD, "edge-2");
  let refusal: DialError | undefined;
  dialProxy(pair.client, { protocol: "tcp", address: "10.0.0.7:80" }, {
    onConnected: () => {},
    onFailed: (error) => refusal = error,
  }, { authority: "server", timers, dialId: 1, metadata });
  await settled();
  return refusal;
}

Deno.test("the frontend of callers refuses a call that names two nodes", async () => {
  const router = frontendRouter(socketCaller(), {
    ...OPTIONS,
    counted: () => {},
    publicMethods: {},
  });
  const error = await refusalOf(router);
  assertEquals([error?.reason, error?.message], ["refused", TWO_NODES]);
});

Deno.test("the frontend of nodes does so, too", async () => {
  const frontend = new NodeFrontend({
    ...OPTIONS,
    ...{ loads: new CallerLoads(), join },
    admit: () => undefined,
    resolve: () => undefined,
    refused: () => {},
    counted: () => {},
  });
  const methods: Record<string, MethodHandler> = {
    ...frontend.methods(certifiedCaller("node:edge-9")),
  };
  assertEquals(PROXY_PATH in methods, true);
  const { timers } = OPTIONS;
  const error = await refusalOf(new GrpcRouter({ timers, methods }));
  assertEquals([error?.reason, error?.message], ["refused", TWO_NODES]);
});
