/**
 * The code of a failed dial reaches its caller from where the problem is, over
 * both carriers and whatever the caller speaks.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { TunnelDialError } from "../../client/dial_error.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { parseRule } from "../../policy/rule.ts";
import { RuleSet } from "../../policy/rule_set.ts";
import type { Carrier } from "../../proto/link/link.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];
const PROTOCOLS: readonly FrontendProtocol[] = ["grpc", "http-connect"];

async function codeOfDial(dial: Promise<unknown>): Promise<string> {
  const outcome = await dial.then(() => "connected", (error) => error);
  assert(outcome instanceof TunnelDialError, String(outcome));
  return outcome.tunnelCode;
}

/** Where nobody listens. */
function closedPort(): string {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return `127.0.0.1:${listener.addr.port}`;
}

for (const carrier of CARRIERS) {
  for (const protocol of PROTOCOLS) {
    Deno.test(`${carrier}, ${protocol}: a caller learns the code of what failed`, async () => {
      await using tunnel = await Tunnel.linked(carrier);
      const dial = (address: string) =>
        codeOfDial(
          tunnel.dial(protocol, { target: { protocol: "tcp", address } }),
        );
      assertEquals(await dial(closedPort()), "TUN503");
      assertEquals(await dial("name.invalid:80"), "TUN505");
    });
  }
}

for (const carrier of CARRIERS) {
  Deno.test(`${carrier}: a rule of the agent's has its code`, async () => {
    await using tunnel = await Tunnel.open();
    const label = "--allow tcp:10.0.0.0/8:80";
    const rules = new RuleSet({
      allow: [{ rule: parseRule("tcp:10.0.0.0/8:80"), label }],
      deny: [],
    });
    const options = await tunnel.agentOptions({ carrier });
    const dials = { ...options.dials, rules };
    const { log } = tunnel.startAgent({ ...options, dials });
    await log.until(/^linked to server$/);
    await tunnel.log.until(/^agent linked$/);
    const target = { protocol: "tcp", address: "127.0.0.1:80" };
    assertEquals(await codeOfDial(tunnel.dial("grpc", { target })), "TUN603");
  });
}

Deno.test("without an agent the code says so", async () => {
  await using tunnel = await Tunnel.open();
  const target = { protocol: "tcp", address: "127.0.0.1:80" };
  for (const protocol of PROTOCOLS) {
    const code = await codeOfDial(tunnel.dial(protocol, { target }));
    assertEquals(code, "TUN501");
  }
});
