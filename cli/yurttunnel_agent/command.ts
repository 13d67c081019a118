/**
 * `tunnel yurttunnel-agent`: the command line of yurttunnel's agent, for its
 * servers, Konnectivity's and ours.
 *
 * @module
 */

import { surviveInternalErrors } from "../../platform/log/internal_error_log.ts";
import { tlsInUse } from "../../net/tls/tls_in_use.ts";
import { VERSION } from "../../platform/process/version.ts";
import { type Command, defineCommand } from "../program/command.ts";
import { YURTTUNNEL_AGENT_FLAGS } from "./flags.ts";
import {
  type YurttunnelAgentOptions,
  yurttunnelAgentOptions,
} from "./options.ts";
import { type ListenFlag, namingFlags } from "../flags/addresses.ts";
import type { Running } from "../../net/program/program.ts";
import { programLog, type Start } from "../program/long_running.ts";
import { untilStopped } from "../program/until_stopped.ts";

/**
 * Makes the command.
 *
 * @param start Handed in, so that help and tests need no agent.
 */
export function yurttunnelAgentCommand(
  start: Start<YurttunnelAgentOptions, Running>,
): Command {
  return defineCommand({
    name: "yurttunnel-agent",
    about: [
      "Takes the place of yurttunnel-agent: has a certificate issued by the " +
      "cluster (an operator must approve it; tunnel server --csr-approver " +
      "does), finds its servers by their Service, and dials what they ask for.",
    ],
    examples: [
      "tunnel yurttunnel-agent --node-name=$NODE_NAME --node-ip=$NODE_IP",
      "tunnel yurttunnel-agent --node-name edge1 --node-ip 10.0.0.7 \\",
      "  --tunnelserver-addr tunnel.example:10262",
    ],
    rights: "network",
    flags: YURTTUNNEL_AGENT_FLAGS,
    rules: ({ values, ...reading }) => [
      // A Pod knows its node by variables, which a file has not.
      () =>
        yurttunnelAgentOptions({
          ...reading,
          values: {
            ...values,
            "node-name": values["node-name"] || "node",
            "node-ip": values["node-ip"] || "127.0.0.1",
          },
        }, () => undefined),
    ],
    async run(reading, { print, environment }) {
      const { values } = reading;
      if (values["version"]) return print(`tunnel ${VERSION}\n`);
      const options = yurttunnelAgentOptions(reading, environment);
      const log = programLog("agent", reading);
      using _net = surviveInternalErrors(log);
      const flags: ListenFlag[] = [["--meta-port", options.agent.health]];
      const running = await namingFlags(flags, () => start(options, log));
      log.detail(tlsInUse());
      await untilStopped(running, Deno, log);
    },
  });
}
