/**
 * `tunnel bench`: a quick look at how fast a running tunnel is.
 *
 * @module
 */

import { TunnelDialError } from "../../client/dial_error.ts";
import { describeRoute, type TunnelRoute } from "../../client/tunnel_route.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import { BenchError } from "./bench_conn.ts";
import { runBench } from "./bench_run.ts";
import { BenchScreen } from "./report.ts";
import { asDialFailure, dialWarnings, failure } from "../program/exit_codes.ts";
import { serveBench } from "../../agent/dial/bench_targets.ts";
import {
  type Command,
  type CommandContext,
  defineCommand,
} from "../program/command.ts";
import { isWrittenOver } from "../program/progress.ts";
import type { HostPort } from "../flags/addresses.ts";
import { BENCH_FLAGS, benchPlans, benchServe, benchTarget } from "./flags.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import { routeOf, routeRules } from "../flags/route_flags.ts";
import { ENDS, onSignals, type SignalSource } from "../program/signals.ts";
import { UsageError } from "../flags/usage_error.ts";
import { given } from "../../platform/documents/given.ts";

/** What the command takes of the process. */
interface BenchTerminal {
  readonly signals: SignalSource;
  /** Whether a line on stderr can be written over. */
  isTerminal(): boolean;
}

/** See the module description. */
export const BENCH_COMMAND = benchCommand({
  signals: Deno,
  isTerminal: () => isWrittenOver(Deno.stderr),
});

/** The command; tests give it their own terminal. */
export function benchCommand(terminal: BenchTerminal): Command {
  return defineCommand({
    name: "bench",
    about: [
      "Measures through a running tunnel, against the agent itself: round " +
      "trips of 64 bytes, throughput from and to the agent, new connections " +
      "per second. It sends as fast as it can, for some twelve seconds; " +
      "others feel that. Interrupted, it prints its results so far. A measurement " +
      "that comes to nothing says why behind a dash.",
      "An agent of Konnectivity's, or one with --bench-target=false, has " +
      "nothing to measure against: run tunnel bench --serve PORT beside it, " +
      "and name that address with --target.",
    ],
    examples: [
      "tunnel bench --server unix:/run/tunnel.sock --node node7",
      "tunnel bench --server unix:/run/tunnel.sock --proxy-mode http-connect",
      "tunnel bench --serve 7007     # on a node with another agent, and then",
      "tunnel bench --target 127.0.0.1:7007 --server unix:/run/tunnel.sock",
    ],
    rights: "network",
    flags: BENCH_FLAGS,
    rules: (reading) => [
      ...routeRules(reading),
      () => benchServe(reading),
      () => benchPlans(reading),
      () => benchTarget(reading),
    ],
    async run(reading, context) {
      const serve = benchServe(reading);
      if (serve !== undefined) return await serveUntilEnded(serve, context);
      const route = routeOf(reading, {
        ...context,
        log: () => dialWarnings("bench"),
      });
      await measured(reading, route, context, terminal);
    },
  });
}

/** One run of the command. */
async function measured(
  reading: FlagReading<typeof BENCH_FLAGS>,
  route: TunnelRoute,
  context: CommandContext,
  { signals, isTerminal }: BenchTerminal,
): Promise<void> {
  const { values } = reading;
  const address = benchTarget(reading);
  if (route.kind === "direct" && address === undefined) {
    throw new UsageError(
      "Cannot bench a direct route: there is no agent on it; give --target",
    );
  }
  const screen = new BenchScreen(
    { route: describeRoute(route), target: address ?? "the agent" },
    { isLive: isTerminal(), isJson: values["json"] },
    context,
  );
  const abort = new AbortController();
  const dialer = openDialer(route);
  using _ends = onSignals(ENDS, () => abort.abort(), signals);
  try {
    await runBench({
      ...{ dialer, plans: benchPlans(reading), signal: abort.signal },
      durationMs: values["duration"],
      timeoutMs: values["dial-timeout"],
      told: screen,
      ...given({ address, node: values["node"] || undefined }),
    });
  } catch (error) {
    const isDial = error instanceof TunnelDialError;
    if (!isDial && !(error instanceof BenchError)) throw error;
    screen.end(false, error.message);
    throw isDial ? asDialFailure(error) : error;
  } finally {
    dialer.close();
  }
  const { aborted } = abort.signal;
  const { figures, gaps } = screen.end(aborted);
  if (figures.length === 0) {
    const why = aborted
      ? "interrupted before anything was measured"
      : `nothing was measured: ${gaps[0]?.reason}`;
    throw failure(why, "TUN506");
  }
  if (aborted) context.printError("tunnel bench: interrupted\n");
}

async function serveUntilEnded(
  at: HostPort,
  context: CommandContext,
): Promise<never> {
  const { address } = serveBench(
    { hostname: at.host, port: at.port },
    (line) => context.printError(`tunnel bench: ${line}\n`),
  );
  context.print(`${address}\n`);
  return await new Promise(() => {});
}
