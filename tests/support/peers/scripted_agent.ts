/**
 * An agent of another make, over real TLS, that says what a test tells it.
 *
 * @module
 */

import { connectTls } from "../../../net/dial/server_connect.ts";
import { openClientConnection } from "../../../net/http2/client_connection.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { Metadata } from "../../../proto/grpc/metadata.ts";
import { certificates } from "../certificates/certificates.ts";
import { ScriptedCaller } from "../watch/packet_script.ts";
import type { Tunnel } from "../rigs/tunnel_harness.ts";
import { CONNECT_PATH } from "../../../proto/link/capabilities.ts";

/** Calls `/AgentService/Connect`. @param fields Of its metadata. */
export async function scriptedAgent(
  tunnel: Tunnel,
  fields: readonly [string, string][] = [["agentid", "go-1"]],
): Promise<ScriptedCaller> {
  const { ca, client } = await certificates();
  const metadata = new Metadata();
  for (const [name, value] of fields) metadata.add(name, value);
  return await connectTls({
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
    return new ScriptedCaller(connection, CONNECT_PATH, metadata);
  });
}
