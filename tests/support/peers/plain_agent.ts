/**
 * An agent that does what Konnectivity's does and nothing of ours: it links over
 * the packets carrier, looks every name up, and dials what it is asked to.
 *
 * @module
 */

import { connectTls } from "../../../net/dial/server_connect.ts";
import { dialTarget } from "../../../net/dial/dial.ts";
import { openClientConnection } from "../../../net/http2/client_connection.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { DialHandler } from "../../../proto/link/dial_handler.ts";
import type { DialError } from "../../../proto/peer/dial_error.ts";
import { openPacketsAgent } from "../../../proto/link/packets_agent.ts";
import { certificates } from "../certificates/certificates.ts";
import type { Tunnel } from "../rigs/tunnel_harness.ts";

const dial: DialHandler = (target, answer) => {
  const controller = new AbortController();
  dialTarget(target, { signal: controller.signal }).then(
    (conduit) => answer.connected(conduit),
    (error: DialError) => answer.failed(error),
  );
  return { cancel: () => controller.abort() };
};

/** Links such an agent; it goes with the server. */
export async function plainAgent(tunnel: Tunnel): Promise<void> {
  const { ca, client } = await certificates();
  const linked = Promise.withResolvers<void>();
  await connectTls({
    host: "127.0.0.1",
    port: tunnel.agentPort,
    credentials: { ca, ...client },
    alpn: ["h2"],
    proxyEnv: {},
    timeoutMs: 10_000,
  }).then((stream) => {
    const connection = openClientConnection(stream, {
      timers: systemTimers,
    });
    openPacketsAgent(connection, {
      agentId: "go-1",
      identifiers: "",
      authority: "tunnel-server",
      onDial: dial,
      timers: systemTimers,
      onServerInfo: () => linked.resolve(),
      onClosed: (error) => {
        linked.reject(error);
        connection.shutdown(error.message);
      },
    });
  });
  await linked.promise;
}
