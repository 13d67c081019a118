/**
 * `TUNNEL_SOCKETS`, the way back to other sockets: with each of them, and with
 * no more than the packaged program may do, a tunnel carries bytes, and its log
 * says which sockets they are.
 *
 * @module
 */

import { assertStringIncludes } from "@std/assert";
import { SOCKET_CHOICES } from "../../net/poll/socket_choice.ts";
import { carryWith } from "../support/rigs/chosen_tunnel.ts";
import { WAKEUPS } from "../support/memory/socket_kinds.ts";

const WORDS: Readonly<Record<string, string>> = {
  platform: "Local sockets are the platform's: $TUNNEL_SOCKETS says so",
  thread:
    "Local sockets are the C library's: a thread waits for them, as $TUNNEL_SOCKETS says",
  ring: "Local sockets are the C library's: io_uring wakes the program",
};

for (const choice of SOCKET_CHOICES) {
  Deno.test({
    name: `a tunnel over sockets of the kind "${choice}"`,
    ignore: choice !== "platform" && WAKEUPS[choice] === undefined,
    fn: async () => {
      const all = { server: choice, agent: choice, dial: choice };
      const logs = await carryWith("TUNNEL_SOCKETS", all);
      assertStringIncludes(logs.server, WORDS[choice]!);
      assertStringIncludes(logs.agent, WORDS[choice]!);
    },
  });
}
