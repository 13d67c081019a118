/**
 * `tunnel agent`: flags to options, then the agent.
 *
 * @module
 */

import { surviveInternalErrors } from "../../platform/log/internal_error_log.ts";
import type { LeveledLog } from "../../platform/log/log.ts";
import {
  ProxyAddressError,
  proxyEnvironment,
  proxyFor,
} from "../../net/dial/proxy_environment.ts";
import { UsageError } from "../flags/usage_error.ts";
import type { AgentOptions } from "../../agent/options.ts";
import {
  type Command,
  type CommandContext,
  defineCommand,
  type FlagRule,
} from "../program/command.ts";
import { AGENT_FLAGS, RULE_FLAGS, rulesOf } from "./flags.ts";
import { announcedServices } from "./announce.ts";
import { agentOptions } from "./options.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import { liveConfig, shownFlags } from "../flags/effective_flags.ts";
import { relayFlags, relayOptions } from "../flags/relay_flags.ts";
import type { ListenFlag } from "../flags/addresses.ts";
import {
  programLog,
  runUntilStopped,
  type Start,
} from "../program/long_running.ts";
import { workerRole } from "../program/workers/worker_words.ts";
import { withSomeGroup } from "../flags/program_flags.ts";

/**
 * Makes the command.
 *
 * @param start Handed in, so that help and tests need no agent.
 */
export function agentCommand(start: Start<AgentOptions>): Command {
  return defineCommand({
    name: "agent",
    about: [
      "Runs on a node that cannot be dialed: calls out to the servers and makes " +
      "the connections that they ask for. It is known by the identity that " +
      "the node has joined with, or joins first (--join), or by --agent-cert. " +
      "Takes the flags of Konnectivity's proxy-agent.",
    ],
    examples: [
      "tunnel agent --server tunnel.example:8091 --join tnl1.…",
      "tunnel agent --proxy-server-host tunnel.example --ca-cert ca.crt \\",
      "  --agent-cert node7.crt --agent-key node7.key --identifiers host=node7",
    ],
    rights: "network",
    flags: AGENT_FLAGS,
    rules: agentFlagRules,
    async run(reading, context) {
      const role = workerRole(context.environment);
      const options = agentOptions(
        reading,
        () => role?.id ?? crypto.randomUUID(),
        defaultStateDirectory("agent", context.environment),
        role,
      );
      refuseUnusableProxy(options, context);
      const { values } = reading;
      const log = programLog("agent", reading, role);
      using _net = surviveInternalErrors(log);
      const live = {
        ...withConfig(options, reading, context, log),
        shownFlags: shownFlags("agent", AGENT_FLAGS, context),
      };
      const { identity, health, adminAccess, drainTimeoutMs } = options;
      await runUntilStopped(
        {
          command: "agent",
          flags: values,
          role,
          stateDirectory: identity?.stateDirectory,
          port: health,
          portFlag: "a --health-server-port",
          listens: listenFlags(options),
          health,
          access: adminAccess ?? {},
          endMs: drainTimeoutMs,
          start: () => start(live, log),
        },
        context,
        log,
      );
    },
  });
}

/**
 * The environment of a process does not change, so another attempt would fail,
 * too.
 */
function refuseUnusableProxy(
  { server }: AgentOptions,
  { environment }: CommandContext,
): void {
  try {
    for (const { host, port } of server.addresses) {
      proxyFor(host, port, proxyEnvironment(environment));
    }
  } catch (error) {
    if (!(error instanceof ProxyAddressError)) throw error;
    throw new UsageError(
      `${error.message}; or unset it, or name the server in NO_PROXY`,
    );
  }
}

/** Rules and announced services follow the `--config` file while it runs. */
function withConfig(
  options: AgentOptions,
  { values }: FlagReading<typeof AGENT_FLAGS>,
  sources: CommandContext,
  log: LeveledLog,
): AgentOptions {
  let rules = options.dials.rules?.();
  let { services = [] } = options;
  const config = liveConfig({
    command: "agent",
    table: AGENT_FLAGS,
    sources,
    values,
    log,
    live: {
      flags: [...RULE_FLAGS, "announce"],
      take: (values) => {
        const announced = announcedServices(values["announce"]);
        rules = rulesOf(values);
        // Plain data, written by the same code.
        const isNews = JSON.stringify(announced) !== JSON.stringify(services);
        if (isNews) services = announced;
      },
    },
  });
  if (config === undefined) return options;
  return {
    ...options,
    config,
    dials: { ...options.dials, rules: () => rules },
    liveServices: () => services,
  };
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

/** These values appear in no message. */
const SOME_DIRECTORY = "state";
const SOME_NAME = "node";

/** Some are parts of the last one, which says one thing at a time. */
export function agentFlagRules(
  reading: FlagReading<typeof AGENT_FLAGS>,
): readonly FlagRule[] {
  const { values } = reading;
  // Its machine has a host name that will do.
  const node = values["node"] || SOME_NAME;
  const alone = { ...withSomeGroup(values), node };
  // Without a token that can be looked at the node is taken to have joined.
  const hasJoined = () => values["join"] === "" || values["join"] === "-";
  return [
    () => rulesOf(values),
    () => announcedServices(values["announce"]),
    () => relayOptions(values),
    () =>
      agentOptions(
        { ...reading, values: alone },
        () => SOME_NAME,
        SOME_DIRECTORY,
        undefined,
        hasJoined,
      ),
  ];
}
