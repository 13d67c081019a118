/**
 * `tunnel agent`: flags to options, then the agent.
 *
 * @module
 */

import { surviveInternalErrors } from "../../platform/log/internal_error_log.ts";
import { type Log, openLog } from "../../platform/log/log.ts";
import { tlsInUse } from "../../net/tls/tls_in_use.ts";
import type { AgentOptions } from "../../agent/options.ts";
import {
  type Command,
  type CommandContext,
  defineCommand,
  refuseOperands,
} from "../program/command.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { AGENT_FLAGS } from "./flags.ts";
import { announcedServices } from "./announce.ts";
import { agentOptions, RULE_FLAGS, rulesOf } from "./options.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import { handoverAddress } from "../flags/handover_flags.ts";
import { liveConfig } from "../flags/live_config.ts";
import { relayFlags } from "../flags/relay_flags.ts";
import { type ListenFlag, namingFlags } from "../flags/listen_flags.ts";
import {
  type Succeeding,
  Succession,
  type SuccessionOptions,
} from "../program/succession.ts";
import { untilStopped } from "../program/until_stopped.ts";

/** Gets the agent up; rejects when that cannot be. */
export type StartAgent = (
  options: AgentOptions,
  log: Log,
) => Promise<Succeeding>;

/**
 * Makes the command.
 *
 * @param start Handed in, so that help and tests need no agent.
 */
export function agentCommand(start: StartAgent): Command {
  return defineCommand({
    name: "agent",
    summary: "Connect a node to servers, and dial targets for them",
    operands: "[flags]",
    about: [
      "Runs on a node that nobody can dial: calls out to the servers and makes " +
      "the connections that they ask for. It is known by the identity that " +
      "the node has joined with, or joins first (--join), or by --agent-cert. " +
      "Takes the flags of Konnectivity's proxy-agent.",
    ],
    examples: [
      "tunnel agent --server tunnel.example:8091 --join tnl1.…",
      "tunnel agent --proxy-server-host tunnel.example --ca-cert ca.crt \\",
      "  --agent-cert node7.crt --agent-key node7.key --identifiers host=node7",
    ],
    flags: AGENT_FLAGS,
    async run(reading, context) {
      refuseOperands(reading.operands);
      const options = agentOptions(
        reading,
        () => crypto.randomUUID(),
        defaultStateDirectory("agent", context.environment),
      );
      const { values } = reading;
      const log = openLog("agent", {
        format: values["log-format"],
        level: values["v"],
      });
      using _net = surviveInternalErrors(log);
      for (const notice of reading.notices) log.warn(notice);
      let { rules } = options.dials;
      let { services = [] } = options;
      const config = liveConfig({
        command: "agent",
        table: AGENT_FLAGS,
        sources: context,
        values,
        log,
        live: {
          flags: [...RULE_FLAGS, "announce"],
          take: (values) => {
            const announced = announcedServices(values["announce"]);
            rules = rulesOf(values);
            if (!isSame(announced, services)) services = announced;
          },
        },
      });
      const live = {
        ...options,
        ...(config && {
          config,
          liveRules: () => rules,
          liveServices: () => services,
        }),
      };
      const succession = await Succession.begin(
        successionOf(options, values, context.environment),
        log,
      );
      const running = await succession.start(() =>
        namingFlags(listenFlags(options), () => start(live, log))
      );
      log.detail(tlsInUse());
      await untilStopped(running, Deno, log);
      return ExitCode.OK;
    },
  });
}

function listenFlags(
  { admin, health, relay }: AgentOptions,
): readonly ListenFlag[] {
  return [
    ["--admin-server-port", admin!, "--admin-bind-address"],
    ["--health-server-port", health, "--health-server-host"],
    ...relayFlags(relay),
  ];
}

/** By their state directory, where they have one, else by their ports. */
function successionOf(
  { identity, health: port }: AgentOptions,
  flags: { readonly "handover-socket": string; readonly replace: boolean },
  environment: CommandContext["environment"],
): SuccessionOptions {
  const command = "agent";
  return {
    command,
    address: handoverAddress({
      command,
      flag: flags["handover-socket"],
      ...(identity && { stateDirectory: identity.stateDirectory }),
      port,
    }),
    replace: flags.replace,
    ownFlags: identity === undefined
      ? "a --health-server-port"
      : "a --state-dir and ports",
    environment,
  };
}

/** Plain data, written by the same code. */
function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
