/**
 * ServiceAccount tokens that name no node, before a server that binds agents to
 * their nodes: they speak for nobody.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type { AgentOptions } from "../../agent/options.ts";
import type { Carrier } from "../../proto/link/link.ts";
import { FakeApiServer } from "../support/peers/fake_apiserver.ts";
import { tokenSaying } from "../support/peers/service_account_tokens.ts";
import { Tunnel, type TunnelAgent } from "../support/rigs/tunnel_harness.ts";

const AUDIENCE = "system:konnectivity-server";
const USER = "system:serviceaccount:kube-system:agent";
const MISMATCHES = "tunnel_server_token_binding_mismatches_total";

/** A server that has tokens reviewed, and whose they are. */
async function open(api: FakeApiServer): Promise<Tunnel> {
  api.onTokenReview = () => ({
    authenticated: true,
    audiences: [AUDIENCE],
    user: { username: USER },
  });
  return await Tunnel.open({
    server: {
      kubernetes: {
        master: api.url,
        agentTokens: {
          namespace: "kube-system",
          serviceAccount: "agent",
          audience: AUDIENCE,
        },
      },
    },
    serverAgents: { nodeBinding: "enforce" },
  });
}

/** An agent that shows a token and says it is edge-1, with all that it has. */
async function impostor(
  tunnel: Tunnel,
  carrier: Carrier,
): Promise<TunnelAgent> {
  const options = await tunnel.agentOptions({
    agentId: "edge-1",
    identifiers: {
      host: ["edge-1", "kube-dns"],
      ipv4: ["192.168.77.10"],
      cidr: ["0.0.0.0/0"],
      defaultRoute: true,
    },
    keyPair: "none",
    carrier,
  });
  const tokenFile = await tunnel.file(
    tokenSaying({ sub: USER, aud: AUDIENCE }),
  );
  const server: AgentOptions["server"] = { ...options.server, tokenFile };
  return tunnel.startAgent({ ...options, server });
}

for (const carrier of ["streams", "packets"] as const) {
  Deno.test(`a token of no Pod speaks for no node (${carrier})`, async () => {
    await using api = FakeApiServer.start();
    await using tunnel = await open(api);
    const { log } = await impostor(tunnel, carrier);
    const { message } = await log.until(/^linked to server$|trying again/);
    assert(/names no node, for it is bound to no Pod/.test(message), message);
    assert((await tunnel.metric(MISMATCHES)) >= 1);
    assertEquals(tunnel.log.matching(/^agent linked$/), []);
  });
}
