/**
 * `tunnel demo`: the whole product on one machine, in seconds.
 *
 * @module
 */

import { isWrittenOver } from "../program/progress.ts";
import { dial } from "../../client/dial.ts";
import { CommandFailure, ExitCode } from "../program/exit_codes.ts";
import { defineCommand, refuseOperands } from "../program/command.ts";
import { Stage, startTarget } from "./stage.ts";
import { tellStory } from "./story.ts";
import { GENERAL_FLAGS } from "../flags/program_flags.ts";
import { ENDS, onSignals } from "../program/signals.ts";

/** See the module description. */
export const DEMO_COMMAND = defineCommand({
  name: "demo",
  operands: "[target]",
  about: [
    "Starts a server, two agents that join it with a token, and a target, as " +
    "processes of their own, sends requests and 256 MiB through gRPC and " +
    "CONNECT to both nodes, ends one agent, shows the refusal, and removes " +
    "everything. Listens on loopback only. With the word target it is that " +
    "process.",
  ],
  examples: ["tunnel demo"],
  rights: "programs",
  flags: { "help": GENERAL_FLAGS["help"] },
  async run({ operands }, context) {
    if (operands[0] === "target" && operands.length === 1) {
      context.print(`${startTarget()}\n`);
      return await new Promise(() => {});
    }
    refuseOperands(operands);
    const stage = new Stage();
    const interrupted = Promise.withResolvers<never>();
    const onSignal = () =>
      interrupted.reject(
        new CommandFailure(
          ExitCode.FAILURE,
          "Interrupted; all is cleaned up",
          undefined,
          "TUN119",
        ),
      );
    using _ends = onSignals([...ENDS, "SIGHUP"], onSignal);
    // A signal before the end settles this first; the story then fails unheard.
    interrupted.promise.catch(() => {});
    try {
      await Promise.race([
        interrupted.promise,
        tellStory({
          stage,
          dial: (path, protocol, node, port) =>
            dial(`127.0.0.1:${port}`, {
              via: {
                kind: "tunnel",
                protocol,
                address: { kind: "unix", path },
              },
              node,
            }),
          now: () => performance.now(),
          print: context.print,
          isTerminal: isWrittenOver(Deno.stdout),
        }),
      ]);
    } finally {
      await stage.strike();
    }
    return ExitCode.OK;
  },
});
