/**
 * `tunnel proxy`: local ports for services, balanced over their endpoints.
 *
 * @module
 */

import { nodeRoutes } from "../../admin/agent/agent_routes.ts";
import { shownFlags } from "../flags/effective_flags.ts";
import {
  environmentText,
  hostsText,
  type LocalName,
} from "../../services/proxy/dns/local_names.ts";
import {
  type NodeProxyOptions,
  startNodeProxy,
} from "../../agent/proxy/node_proxy.ts";
import { plannedNames } from "../../services/proxy/dns/planned_names.ts";
import { surviveInternalErrors } from "../../platform/log/internal_error_log.ts";
import type { Log } from "../../platform/log/log.ts";
import {
  type CommandContext,
  defineCommand,
  refuseOperands,
} from "../program/command.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { PROXY_FLAGS } from "./flags.ts";
import {
  adminAddress,
  exposureNotice,
  proxyAdminAccess,
  proxyOptions,
} from "./options.ts";
import { relayFlags } from "../flags/relay_flags.ts";
import { readFirst } from "../program/sources.ts";
import {
  isParent,
  type LongRunning,
  programLog,
  runUntilStopped,
} from "../program/long_running.ts";
import { workerRole } from "../program/workers/worker_words.ts";
import { UsageError } from "../flags/usage_error.ts";
import { checkSources } from "../../services/proxy/source_check.ts";
import { printable } from "../../platform/text/printable.ts";
import { counted } from "../../platform/text/quantities.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { KEEPS_NOTHING } from "./discovery.ts";

/** See the module description. */
export const PROXY_COMMAND = defineCommand({
  name: "proxy",
  operands: "--config FILE | --kubernetes | --etcd URL … [flags]",
  about: [
    "Gives each service a port on this machine, and connects whoever comes to " +
    "one of its endpoints: directly, or through the tunnel where the endpoint " +
    "is behind an agent. Services and endpoints may come and go meanwhile, " +
    "from several sources at once. Takes the flags of kube-proxy 0.4.",
    "tunnel services and tunnel endpoints show what it does. docs/services.md " +
    "says how.",
  ],
  examples: [
    "tunnel proxy --config services.yaml",
    "tunnel proxy --config services.yaml --check",
    "tunnel proxy --config services.yaml --local-addresses virtual-ips",
    "tunnel proxy --config services.yaml --print-env > services.env",
    "tunnel proxy --etcd-servers http://10.0.0.1:2379 --bind-address 0.0.0.0 \\",
    "  --local-addresses original",
  ],
  rights: "network",
  flags: PROXY_FLAGS,
  async run(reading, context) {
    refuseOperands(reading.operands);
    const isChecking = reading.values["check"];
    const values = isChecking
      ? { ...reading.values, ...CHECKED_VALUES }
      : reading.values;
    const isPrinting = values["print-env"] || values["print-hosts"] ||
      isChecking;
    const role = workerRole(context.environment);
    // The output of these is a list and nothing else.
    const logged = isPrinting ? { ...values, "v": 0 } : values;
    const log = programLog("proxy", { ...reading, values: logged }, role);
    using _net = surviveInternalErrors(log);
    const run: Omit<LongRunning, "listens" | "start"> = {
      command: "proxy",
      flags: values,
      role,
      stateDirectory: undefined,
      port: adminAddress(values),
      portFlag: "an --admin-port",
      access: proxyAdminAccess(values, context),
      endMs: values["drain-timeout"],
    };
    if (isParent(run) && !isPrinting) {
      const start = () => Promise.reject(new Error("a parent runs no proxy"));
      await runUntilStopped({ ...run, listens: [], start }, context, log);
      return;
    }
    const options = proxyOptions({ ...reading, values }, context, log, role);
    if (isChecking) return await printCheck(options, context);
    await readFirst(options.sources);
    if (isPrinting) return await printNames(values, options, log, context);
    const exposure = exposureNotice(options.addresses);
    if (exposure !== undefined) log.warn(exposure, { code: "TUN333" });
    const live = {
      ...options,
      shownFlags: shownFlags("proxy", PROXY_FLAGS, context),
    };
    await runUntilStopped(
      {
        ...run,
        listens: [
          ["--admin-port", options.admin, "--admin-bind-address"],
          ...relayFlags(options.relay),
        ],
        start: () => startNodeProxy(live, log, nodeRoutes),
      },
      context,
      log,
    );
  },
});

/** `--print-env` and `--print-hosts`. */
async function printNames(
  values: {
    readonly "print-env": boolean;
    readonly "print-hosts": boolean;
    readonly "local-addresses": string;
  },
  options: NodeProxyOptions,
  log: Log,
  context: CommandContext,
): Promise<void> {
  if (values["print-hosts"] && values["local-addresses"] !== "virtual-ips") {
    throw new UsageError(
      "Cannot print hosts where services differ by their ports: a hosts file " +
        "knows none; add --local-addresses=virtual-ips",
    );
  }
  const names: readonly LocalName[] = await plannedNames(options, log);
  if (values["print-env"]) {
    context.print(
      environmentText(
        names,
        (line) => context.printError(`tunnel proxy: ${line}\n`),
      ),
    );
  }
  if (values["print-hosts"]) context.print(hostsText(names));
}

/** Longest line about one thing. */
const LINE_LENGTH_MAX = 500;

/** A kept copy would hide that a source does not answer now. */
const CHECKED_VALUES = {
  "catalog-copies": KEEPS_NOTHING,
  "discovery-state": KEEPS_NOTHING,
} as const;

/** `--check`: prints a line for each source and each problem. */
async function printCheck(
  options: Pick<NodeProxyOptions, "sources" | "addresses" | "addressFile">,
  { print }: Pick<CommandContext, "print">,
): Promise<ExitCode> {
  const { sources, problems, notes } = await checkSources(
    options,
    systemTimers,
  );
  const lines = [
    ...sources.map(({ name, services, endpoints }) =>
      `${name}: ${counted(services, "service")}, ${
        counted(endpoints, "endpoint")
      }`
    ),
    ...notes.map((note) => `note: ${note}`),
    ...problems.map((problem) => `wrong: ${problem}`),
    problems.length === 0 ? "ok" : counted(problems.length, "problem"),
  ];
  print(lines.map((line) => `${printable(line, LINE_LENGTH_MAX)}\n`).join(""));
  return problems.length === 0 ? ExitCode.OK : ExitCode.FAILURE;
}
