/**
 * `tunnel server`: flags to options, then the server.
 *
 * @module
 */

import { surviveInternalErrors } from "../../platform/log/internal_error_log.ts";
import type { ServerOptions } from "../../server/options.ts";
import {
  type Command,
  type CommandContext,
  defineCommand,
  type FlagRule,
} from "../program/command.ts";
import { discoveryConfig, withOwnNames } from "./discovery.ts";
import { SERVER_FLAGS } from "./flags.ts";
import { serverOptions, tlsLimits } from "./options.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import { liveConfig, shownFlags } from "../flags/effective_flags.ts";
import { openSources, readFirst } from "../program/sources.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import type { ListenFlag } from "../flags/addresses.ts";
import {
  isParent,
  programLog,
  runUntilStopped,
  type Start,
} from "../program/long_running.ts";
import { workerRole } from "../program/workers/worker_words.ts";
import { withSomeGroup } from "../flags/program_flags.ts";
import { adminRemoteOptions } from "./admin_remote.ts";
import { given } from "../../platform/documents/given.ts";
import { kubeletOptions } from "./kubelet.ts";
import { serverKubernetes } from "./kubernetes.ts";
import { membershipOptions } from "./peers.ts";

/**
 * Makes the command.
 *
 * @param start Handed in, so that help and tests need no server.
 */
export function serverCommand(start: Start<ServerOptions>): Command {
  return defineCommand({
    name: "server",
    about: [
      "Runs where callers are: frontends (kube-apiserver, curl, tunnel dial) " +
      "ask it for connections, and agents that connected to it make them. " +
      "Takes the flags of Konnectivity's proxy-server. Without a certificate " +
      "it makes a CA of its own in --state-dir; agents join with a line that " +
      "`tunnel token create` prints.",
    ],
    examples: [
      "tunnel server",
      "tunnel server --uds-name /run/tunnel.sock --server-port 0 \\",
      "  --cluster-cert server.crt --cluster-key server.key \\",
      "  --cluster-ca-cert ca.crt",
    ],
    rights: "network",
    flags: SERVER_FLAGS,
    rules: serverFlagRules,
    run: (reading, context) => runServer(start, reading, context),
  });
}

async function runServer(
  start: Start<ServerOptions>,
  reading: FlagReading<typeof SERVER_FLAGS>,
  context: CommandContext,
): Promise<void> {
  const role = workerRole(context.environment);
  const options = serverOptions(
    reading,
    defaultStateDirectory("server", context.environment),
    context,
    () => role?.id ?? crypto.randomUUID(),
    role,
  );
  const { values } = reading;
  const log = programLog("server", reading, role);
  using _net = surviveInternalErrors(log);
  const config = liveConfig({
    command: "server",
    table: SERVER_FLAGS,
    sources: context,
    values,
    log,
  });
  const { identity, address: port } = options.agents;
  const discovery = isParent({ flags: values, role })
    ? undefined
    : discoveryConfig(reading, context);
  const sources = withOwnNames(() =>
    openSources(discovery?.sources ?? [], { log })
  );
  await readFirst(sources);
  const live = {
    ...options,
    shownFlags: shownFlags("server", SERVER_FLAGS, context),
    config,
    ...(discovery && { discovery: { ...discovery, sources } }),
  };
  await runUntilStopped(
    {
      command: "server",
      flags: values,
      role,
      stateDirectory: identity?.stateDirectory,
      port,
      portFlag: "an --agent-port",
      listens: listenFlags(live),
      health: options.health,
      access: options.adminAccess ?? {},
      endMs: options.shutdownTimeoutMs,
      start: () => start(live, log),
    },
    context,
    log,
  );
}

function listenFlags(options: ServerOptions): readonly ListenFlag[] {
  const { frontend, agents, admin, health, kubelet, adminRemote } = options;
  const { listen } = frontend;
  const ports = given({
    ...{ agent: agents.address, admin, health },
    "admin-remote": adminRemote?.address,
    kubelet: kubelet?.address,
    server: listen.kind === "unix" ? undefined : listen.address,
  });
  return [
    ...Object.entries(ports).map((
      [name, address],
    ): ListenFlag => [`--${name}-port`, address, `--${name}-bind-address`]),
    ["--uds-name", listen.kind === "unix" ? listen.path : ""],
    ["--admin-socket", options.adminAccess?.socket ?? ""],
    ["--discovery-listen", options.discovery?.listen ?? ""],
  ];
}

/** What go-etcd's file may say; as good a password as any. */
const SOME_TEXT = '{"cluster":{"machines":["http://127.0.0.1:2379"]}}';

/** Every file is there. */
const SOME_FILES: Pick<CommandContext, "readFile"> = {
  readFile: () => SOME_TEXT,
};

/** These values appear in no message. */
const SOME_DIRECTORY = "state";
const SOME_ID = "server";

/** Flags of other ports, which have rules of their own. */
const OF_OTHER_PORTS = /^(?:kubelet|admin-remote|admin-client)-/;

/**
 * The last rule reports one fault at a time, so it should have as little as
 * possible to check.
 */
export function serverFlagRules(
  reading: FlagReading<typeof SERVER_FLAGS>,
): readonly FlagRule[] {
  const { values } = reading;
  // Which suites there are is known where OpenSSL is.
  const alone = { ...withSomeGroup(values), "cipher-suites": [] };
  return [
    () =>
      tlsLimits(values["tls-min-version"], values["cipher-suites"], () => true),
    () => serverKubernetes(values, values["server-id"] || SOME_ID),
    () => kubeletOptions(reading),
    () => membershipOptions(values),
    () => adminRemoteOptions(reading),
    () => discoveryConfig(reading, SOME_FILES),
    () =>
      serverOptions(
        {
          ...reading,
          values: alone,
          given: new Set(
            [...reading.given].filter((name) => !OF_OTHER_PORTS.test(name)),
          ),
        },
        SOME_DIRECTORY,
        SOME_FILES,
        () => SOME_ID,
      ),
  ];
}
