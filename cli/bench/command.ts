/**
 * `tunnel bench`: a quick look at how fast a running tunnel is.
 *
 * @module
 */

import { TunnelDialError } from "../../client/dial_error.ts";
import { describeRoute, type TunnelRoute } from "../../client/tunnel_route.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import { ListenError } from "../../net/bind/listen_error.ts";
import { BenchError } from "./bench_conn.ts";
import { runBench } from "./bench_run.ts";
import {
  type BenchEvent,
  type BenchResult,
  figureRow,
  gapRow,
  progressLine,
  resultJson,
} from "./report.ts";
import {
  asDialFailure,
  CommandFailure,
  dialWarnings,
  ExitCode,
  failure,
} from "../program/exit_codes.ts";
import { serveBench } from "../../agent/dial/bench_targets.ts";
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
import { ENDS, onSignals, type SignalSource } from "../program/signals.ts";
import { UsageError } from "../flags/usage_error.ts";
import { given } from "../flags/given.ts";

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
  readonly #isLive: boolean;
  readonly #result: BenchResult = { figures: [], gaps: [] };
  readonly #abort = new AbortController();

  constructor(
    private readonly reading: FlagReading<typeof BENCH_FLAGS>,
    private readonly route: TunnelRoute,
    private readonly context: CommandContext,
    private readonly terminal: BenchTerminal,
  ) {
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
    using _ends = onSignals(
      ENDS,
      () => this.#abort.abort(),
      this.terminal.signals,
    );
    try {
      const events = runBench({
        ...{ dialer, plans, signal: this.#abort.signal },
        durationMs: values["duration"],
        timeoutMs: values["dial-timeout"],
        ...given({ address, node: values["node"] || undefined }),
      });
      for await (const event of events) this.#tell(event);
    } catch (error) {
      throw this.#failure(error);
    } finally {
      dialer.close();
    }
    return this.#finish();
  }

  #tell(event: BenchEvent): void {
    const { figures, gaps, host } = this.#result;
    switch (event.kind) {
      case "host": {
        const { agentId, software } = this.#result.host = event.host;
        if (host !== undefined) return;
        const who = agentId === ""
          ? `target ${this.#target}`
          : `agent ${agentId}`;
        return this.#say(`${who} (${software}), ${describeRoute(this.route)}`);
      }
      case "progress":
        // On a terminal only: a log is no place for a line that is written over.
        this.#clearLine();
        if (this.#isLive) this.context.printError(progressLine(event));
        return;
      case "figure":
        figures.push(event.figure);
        return this.#say(figureRow(event.figure));
      case "gap":
        gaps.push(event.gap);
        return this.#say(gapRow(event.gap));
    }
  }

  #say(line: string): void {
    this.#clearLine();
    if (!this.reading.values["json"]) this.context.print(`${line}\n`);
  }

  #clearLine(): void {
    if (this.#isLive) this.context.printError("\r\x1b[K");
  }

  #finish(): ExitCode {
    const { figures, gaps } = this.#result;
    const { aborted } = this.#abort.signal;
    this.#clearLine();
    this.#printJson();
    if (figures.length === 0) {
      const why = aborted
        ? "interrupted before anything was measured"
        : `nothing was measured: ${gaps[0]?.reason}`;
      throw failure(why, "TUN506");
    }
    if (aborted) this.context.printError("tunnel bench: interrupted\n");
    return ExitCode.OK;
  }

  #failure(error: unknown): unknown {
    this.#clearLine();
    const isDial = error instanceof TunnelDialError;
    if (!isDial && !(error instanceof BenchError)) return error;
    this.#printJson(error.message);
    return isDial
      ? asDialFailure(error)
      : new CommandFailure(ExitCode.FAILURE, error.message, error);
  }

  #printJson(error?: string): void {
    if (!this.reading.values["json"]) return;
    const about = {
      route: describeRoute(this.route),
      target: this.#target,
      interrupted: error === undefined && this.#abort.signal.aborted,
      error,
    };
    this.context.print(`${resultJson(this.#result, about)}\n`);
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
