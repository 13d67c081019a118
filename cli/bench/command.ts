/**
 * `tunnel bench`: a quick look at how fast a running tunnel is.
 *
 * @module
 */

import { BenchError } from "../../client/bench/bench_conn.ts";
import type {
  BenchFigure,
  BenchGap,
  BenchProgress,
  BenchResult,
} from "../../client/bench/measurement.ts";
import { runBench } from "../../client/bench/bench_run.ts";
import { TunnelDialError } from "../../client/dial_error.ts";
import { describeRoute, type TunnelRoute } from "../../client/tunnel_route.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import { ListenError } from "../../net/bind/listen_error.ts";
import type { BenchHost } from "../../proto/link/bench_wire.ts";
import { figureRow, gapRow, progressLine, resultJson } from "./report.ts";
import { asDialFailure, dialWarnings } from "../program/dial_failure.ts";
import { serveBench } from "../../agent/dial/bench_targets.ts";
import { CommandFailure, ExitCode } from "../program/exit_codes.ts";
import {
  type CommandContext,
  defineCommand,
  refuseOperands,
} from "../program/command.ts";
import { isWrittenOver } from "../program/progress.ts";
import type { HostPort } from "../flags/addresses.ts";
import { BENCH_FLAGS, benchPlans, benchServe, benchTarget } from "./flags.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import { routeOf, routeRules } from "../flags/route_flags.ts";
import type { SignalSource } from "../program/until_stopped.ts";
import { UsageError } from "../flags/usage_error.ts";

/** What the command takes of the process. */
interface BenchTerminal {
  readonly signals: SignalSource;
  /** Whether a line on stderr can be written over. */
  isTerminal(): boolean;
}

const PROCESS: BenchTerminal = {
  signals: Deno,
  isTerminal: () => isWrittenOver(Deno.stderr),
};

const SIGNALS: readonly Deno.Signal[] = ["SIGINT", "SIGTERM"];

/** See the module description. */
export const BENCH_COMMAND = benchCommand(PROCESS);

/** The command; tests give it a terminal of theirs. */
export function benchCommand(
  terminal: BenchTerminal,
): ReturnType<typeof defineCommand> {
  return defineCommand({
    name: "bench",
    operands: "[flags]",
    about: [
      "Measures through a running tunnel, against the agent itself: round " +
      "trips of 64 bytes, throughput from and to the agent, new connections " +
      "per second. It sends as fast as it can, for some twelve seconds; " +
      "others feel that. Interrupted, it prints what it has. A measurement " +
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
      refuseOperands(reading.operands);
      const serve = benchServe(reading);
      if (serve !== undefined) return await serveUntilEnded(serve, context);
      const route = routeOf(reading, {
        ...context,
        log: () => dialWarnings("bench"),
      });
      return await new Bench(reading, route, context, terminal).run();
    },
  });
}

/** One run of the command. */
class Bench {
  readonly #asJson: boolean;
  readonly #isLive: boolean;
  readonly #figures: BenchFigure[] = [];
  readonly #gaps: BenchGap[] = [];
  #host: BenchHost | undefined;

  constructor(
    private readonly reading: FlagReading<typeof BENCH_FLAGS>,
    private readonly route: TunnelRoute,
    private readonly context: CommandContext,
    private readonly terminal: BenchTerminal,
  ) {
    this.#asJson = reading.values["json"];
    this.#isLive = terminal.isTerminal();
  }

  async run(): Promise<ExitCode> {
    const { values } = this.reading;
    const plans = benchPlans(this.reading);
    const address = benchTarget(this.reading);
    if (this.route.kind === "direct" && address === undefined) {
      throw new UsageError(
        "Cannot bench a direct route: there is no agent on it; give --target",
        "TUN101",
      );
    }
    const dialer = openDialer(this.route);
    const abort = new AbortController();
    const onSignal = () => abort.abort();
    const { signals } = this.terminal;
    for (const signal of SIGNALS) signals.addSignalListener(signal, onSignal);
    try {
      const result = await runBench({
        dialer,
        plans,
        durationMs: values["duration"],
        timeoutMs: values["dial-timeout"],
        signal: abort.signal,
        ...(address === undefined ? {} : { address }),
        ...(values["node"] === "" ? {} : { node: values["node"] }),
        onHost: (host) => this.#showHost(host),
        onFigure: (figure) => this.#showFigure(figure),
        onGap: (gap) => this.#showGap(gap),
        onProgress: (progress) => this.#showProgress(progress),
      });
      return this.#finish(result);
    } catch (error) {
      throw this.#failure(error);
    } finally {
      for (const signal of SIGNALS) {
        signals.removeSignalListener(signal, onSignal);
      }
      dialer.close();
    }
  }

  #showHost(host: BenchHost): void {
    this.#host = host;
    if (this.#asJson) return;
    const who = host.agentId === ""
      ? `target ${this.#target}`
      : `agent ${host.agentId}`;
    this.context.print(
      `${who} (${host.software}), ${describeRoute(this.route)}\n`,
    );
  }

  #showFigure(figure: BenchFigure): void {
    this.#figures.push(figure);
    this.#clearLine();
    if (!this.#asJson) this.context.print(`${figureRow(figure)}\n`);
  }

  #showGap(gap: BenchGap): void {
    this.#gaps.push(gap);
    this.#clearLine();
    if (!this.#asJson) this.context.print(`${gapRow(gap)}\n`);
  }

  /** On a terminal only: a log is no place for a line that is written over. */
  #showProgress(progress: BenchProgress): void {
    if (!this.#isLive) return;
    this.#clearLine();
    this.context.printError(progressLine(progress));
  }

  #clearLine(): void {
    if (this.#isLive) this.context.printError("\r\x1b[K");
  }

  #finish(result: BenchResult): ExitCode {
    this.#clearLine();
    if (this.#asJson) this.#printJson(result);
    const { figures, gaps, isInterrupted } = result;
    if (figures.length === 0) {
      const why = isInterrupted
        ? "interrupted before anything was measured"
        : `nothing was measured: ${gaps[0]?.reason}`;
      throw new CommandFailure(ExitCode.FAILURE, why, undefined, "TUN506");
    }
    if (isInterrupted) this.context.printError("tunnel bench: interrupted\n");
    return ExitCode.OK;
  }

  #failure(error: unknown): unknown {
    this.#clearLine();
    const isOurs = error instanceof BenchError ||
      error instanceof TunnelDialError;
    if (!isOurs) return error;
    const { message } = error;
    if (this.#asJson) {
      const host = this.#host;
      this.#printJson({
        ...(host === undefined ? {} : { host }),
        figures: this.#figures,
        gaps: this.#gaps,
        isInterrupted: false,
      }, message);
    }
    if (error instanceof TunnelDialError) return asDialFailure(error);
    return new CommandFailure(ExitCode.FAILURE, message, error);
  }

  #printJson(result: BenchResult, error?: string): void {
    const about = { route: describeRoute(this.route), target: this.#target };
    this.context.print(`${resultJson(result, about, error)}\n`);
  }

  get #target(): string {
    return benchTarget(this.reading) ?? "the agent";
  }
}

async function serveUntilEnded(
  at: HostPort,
  context: CommandContext,
): Promise<ExitCode> {
  try {
    const onProblem = (line: string) =>
      context.printError(`tunnel bench: ${line}\n`);
    const { address } = serveBench(
      { hostname: at.host, port: at.port },
      onProblem,
    );
    context.print(`${address}\n`);
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    throw new CommandFailure(ExitCode.FAILURE, error.message, error);
  }
  return await new Promise(() => {});
}
