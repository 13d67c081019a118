/**
 * A call that names two nodes is refused by either frontend: one of them would be
 * asked, and another be believed to be.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import { GrpcRouter } from "../../proto/grpc/server.ts";
import { NODE_FIELD, TWO_NODES } from "../../proto/link/dial_wishes.ts";
import { dialProxy } from "../../proto/link/proxy_client.ts";
import type { DialError } from "../../proto/peer/dial_error.ts";
import { SILENT_OBSERVER } from "../../proto/link/packet_observer.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  certifiedCaller,
  socketCaller,
} from "../../tests/support/memory/fake_caller.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { frontendRouter } from "./grpc_frontend.ts";
import { NodeFrontend } from "./node_frontend.ts";
import { PROXY_PATH } from "../../proto/link/method_paths.ts";

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
