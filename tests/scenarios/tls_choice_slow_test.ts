/**
 * `TUNNEL_TLS`, the way back to another TLS: whatever each end speaks, and with no
 * more than the packaged program may do, a tunnel carries bytes, and both logs
 * say which TLS it is.
 *
 * @module
 */

import { assertStringIncludes } from "@std/assert";
import { openLibssl } from "../../net/tls/openssl/library.ts";
import {
  TLS_CHOICES,
  type TlsChoice,
} from "../../net/tls/openssl/tls_choice.ts";
import { carryWith } from "../support/rigs/chosen_tunnel.ts";

const WORDS: Readonly<Record<TlsChoice, string>> = {
  platform: "TLS is the platform's: $TUNNEL_TLS says so",
  openssl: "TLS is that of OpenSSL 3.",
};

for (const server of TLS_CHOICES) {
  for (const agent of TLS_CHOICES) {
    Deno.test({
      name: `a server that speaks TLS by "${server}", an agent by "${agent}"`,
      ignore: openLibssl() === undefined,
      fn: async () => {
        const choices = { server, agent, dial: "platform" };
        const logs = await carryWith("TUNNEL_TLS", choices);
        assertStringIncludes(logs.server, WORDS[server]);
        assertStringIncludes(logs.agent, WORDS[agent]);
      },
    });
  }
}
