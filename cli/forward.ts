/**
 * `tunnel forward`: local ports that lead through the tunnel.
 *
 * @module
 */

import { forward } from "../client/forward.ts";
import { namingNodes } from "../client/dial.ts";
import { openDialer } from "../client/tunnel_dialer.ts";
import { describeRoute } from "../client/tunnel_route.ts";
import { openGateway } from "../server/frontends/gateway.ts";
import { MemoryRelief } from "../net/libc/memory_relief.ts";
import type { Tools } from "../platform/program/tools.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import { surviveInternalErrors } from "../platform/log/internal_error_log.ts";
import { isLoopbackHost } from "../proto/peer/ip_address.ts";
import { ListenError } from "../net/bind/listen_error.ts";
import {
  CommandFailure,
  dialFailureText,
  dialWarnings,
  ExitCode,
} from "./program/exit_codes.ts";
import { defineCommand } from "./program/command.ts";
import { spokenLog } from "./program/process_context.ts";
import {
  formatHostPort,
  type ForwardSpec,
  parseForwardSpec,
} from "./flags/addresses.ts";
import { flag } from "./flags/flag.ts";
import type { FlagReading } from "./flags/read_flags.ts";
import {
  EARLY_DATA_FLAG,
  ROUTE_FLAGS,
  routeOf,
  routeRules,
} from "./flags/route_flags.ts";
import { refuseFlags, unusable, UsageError } from "./flags/usage_error.ts";

const FORWARD_FLAGS = {
  ...ROUTE_FLAGS,
  ...EARLY_DATA_FLAG,
  "udp": flag.boolean(false, {
    group: "The target",
    help: "Forward datagrams instead of connections.",
  }),
  "frontend": flag.word("unix:/PATH", {
    group: "A frontend of its own",
    help: "Listen on this socket as a server's frontend does, gRPC and HTTP " +
      "CONNECT alike, and ask the servers for what its callers dial: for " +
      "callers that know one server only, such as kube-apiserver.",
  }),
} as const;

/** See the module description. */
export const FORWARD_COMMAND = defineCommand({
  name: "forward",
  operands: "[[BIND:]PORT:HOST:PORT[@NODE] …] [flags]",
  about: [
    "Listens on each PORT, on loopback unless BIND says otherwise (* is every " +
    "interface), and connects each caller to HOST:PORT as an agent sees it, or " +
    "to a connected node itself where HOST is its name. " +
    "Port 0 takes any free one; the bound ones are printed. Runs until it is " +
    "interrupted.",
    "With several servers each caller is served by the first that can: when one " +
    "is away, hangs or has no agent for the target, the next is asked. " +
    "Connections that stand stay where they are.",
  ],
  examples: [
    "tunnel forward 5432:db.internal:5432 --server unix:/run/tunnel.sock",
    "tunnel forward 8080:127.0.0.1:80@node7 2222:127.0.0.1:22@node7 \\",
    "  --server tunnel.example:8090 --ca-cert ca.crt --cert me.crt --key me.key",
    "tunnel forward 5353:10.0.0.2:53 --udp --server unix:/run/tunnel.sock",
    "tunnel forward --frontend unix:/run/konnectivity.sock \\",
    "  --server a:8090,b:8090 --ca-cert ca.crt --cert me.crt --key me.key",
  ],
  rights: "network",
  flags: FORWARD_FLAGS,
  rules: routeRules,
  async run(reading, context) {
    const specs = reading.operands.map(parseForwardSpec);
    const frontend = frontendPath(reading);
    if (specs.length === 0 && frontend === undefined) {
      throw new UsageError(
        "Cannot forward nothing: wanted [BIND:]PORT:HOST:PORT[@NODE], such " +
          "as 5432:db.internal:5432",
      );
    }
    const log = spokenLog("forward", context);
    using _net = surviveInternalErrors(log);
    const tools = { log, timers: systemTimers };
    const route = routeOf(reading, {
      ...context,
      log: () => dialWarnings("forward"),
    });
    if (frontend !== undefined && route.kind === "direct") {
      throw new UsageError(
        "Cannot use --frontend on a direct route: there is no server to ask; " +
          "remove it, or name servers",
      );
    }
    const dialer = openDialer(route);
    const forPeople = namingNodes(dialer, (line) => log.event(line));
    for (const spec of specs) {
      context.print(await open(spec, reading, forPeople, tools));
    }
    if (frontend !== undefined) {
      const timeoutMs = reading.values["dial-timeout"];
      await openGateway({ path: frontend, dialer, timeoutMs }, tools);
      context.print(`unix:${frontend} -> ${describeRoute(route)}\n`);
    }
    new MemoryRelief(systemTimers);
    return await new Promise(() => {});
  },
});

/** @throws {UsageError} When it is no path, or rules out what else is given. */
function frontendPath(
  { values, given, operands }: FlagReading<typeof FORWARD_FLAGS>,
): string | undefined {
  const text = values["frontend"];
  if (text === "") return undefined;
  const path = /^(?:unix:(?:\/\/(?=\/))?)?([^:]+)$/.exec(text)?.[1];
  if (path === undefined) {
    throw unusable("--frontend", text, "unix:/path");
  }
  if (operands.length === 0) {
    refuseFlags(
      ["node", "udp"],
      (name) => given.has(name),
      "together with --frontend alone: its callers say what they dial; " +
        "remove one of them",
    );
  }
  return path;
}

/** @returns Where it listens, for people. */
async function open(
  spec: ForwardSpec,
  { values }: FlagReading<typeof FORWARD_FLAGS>,
  dialer: ReturnType<typeof openDialer>,
  { log, timers }: Tools,
): Promise<string> {
  const address = formatHostPort(spec.target);
  const node = spec.node ?? values["node"];
  const oneAgent = node === "" && isLoopbackHost(spec.target.host);
  try {
    const { listening } = await forward({
      hostname: spec.listen.host,
      port: spec.listen.port,
      address,
      protocol: values["udp"] ? "udp" : "tcp",
      node: node || undefined,
      oneAgent,
      timeoutMs: values["dial-timeout"],
      earlyData: values["early-data"],
      dialer,
      onRefused: (error, caller) =>
        log.event(
          `${caller}: ${dialFailureText(error)} ` +
            `(id=${error.connectionId ?? "-"})`,
        ),
      onProblem: (line) => log.event(line),
      timers,
    });
    if (oneAgent) {
      log.event(
        `${address} is another machine on each node: callers are refused ` +
          "while more than one is connected; say which with @NODE or --node",
      );
    }
    const where = node === "" ? address : `${address}@${node}`;
    return `${listening} -> ${where}\n`;
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    const next = error.problem === "in-use"
      ? "; choose another port, or 0 for any free one: [BIND:]PORT:HOST:PORT"
      : "";
    throw new CommandFailure(ExitCode.FAILURE, error.message + next, error);
  }
}
