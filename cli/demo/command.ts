/**
 * `tunnel demo`: the whole product on one machine, in seconds.
 *
 * @module
 */

import { isWrittenOver } from "../program/progress.ts";
import { failure } from "../program/exit_codes.ts";
import { defineCommand, refuseOperands } from "../program/command.ts";
import { Stage } from "./stage.ts";
import { tellStory } from "./story.ts";
import { HAS_UNIX_SOCKETS } from "../../net/stream/socket_connect.ts";
import { GENERAL_FLAGS } from "../flags/program_flags.ts";
import { ENDS, onSignals } from "../program/signals.ts";

/** See the module description. */
export const DEMO_COMMAND = defineCommand({
  name: "demo",
  operands: "",
  about: [
    "Starts a server, two agents that join it with a token, and a target, as " +
    "processes of their own, sends requests and 256 MiB through gRPC and " +
    "CONNECT to both nodes, ends one agent, shows the refusal, and removes " +
    "everything. Listens on loopback only.",
  ],
  examples: ["tunnel demo"],
  rights: "programs",
  flags: { "help": GENERAL_FLAGS["help"] },
  async run({ operands }, context) {
    refuseOperands(operands);
    if (!HAS_UNIX_SOCKETS) {
      throw failure(
        "Cannot show the demo: its server takes callers on a unix socket, and " +
          "there are none on Windows; run it on Linux or macOS",
      );
    }
    const stage = new Stage();
    const interrupted = Promise.withResolvers<never>();
    const onSignal = () =>
      interrupted.reject(failure("Interrupted; all is cleaned up"));
    using _ends = onSignals([...ENDS, "SIGHUP"], onSignal);
    // A signal before the end settles this first; the story then fails unheard.
    interrupted.promise.catch(() => {});
    try {
      await Promise.race([
        interrupted.promise,
        tellStory({
          stage,
          print: context.print,
          isTerminal: isWrittenOver(Deno.stdout),
        }),
      ]);
    } finally {
      await stage.strike();
    }
  },
});
