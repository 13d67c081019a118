/**
 * The bench target inside an agent: what `tunnel bench` measures against, so
 * that a running tunnel is all it needs.
 *
 * It is a target like others, by its name: rules must allow it, because a
 * caller that may use one port of a node must not be able to load the node. It
 * also has limits.
 *
 * @module
 */

import { refusal } from "../../policy/refusal.ts";
import {
  NOT_ALLOWED,
  type RuleDecision,
  type RuleSet,
} from "../../policy/rule_set.ts";
import { subjectOf } from "../../policy/subject.ts";
import { BENCH_ADDRESS, type BenchHost } from "../../proto/link/bench_wire.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { BenchConduit } from "./bench_conduit.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { type ListenAddress, listenTcp } from "../../net/listen/listeners.ts";
import { conduitOf } from "../../net/stream/stream_conduit.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { VERSION } from "../../platform/process/version.ts";
import { transfer } from "../../proto/transfer/transfer.ts";

/**
 * Bench connections at a time: `tunnel bench` opens 64 at most. With a window
 * of 256 KiB each they hold 32 MiB at most.
 */
export const BENCH_CONDUITS_MAX = 128;

export class BenchTargets {
  #open = 0;

  /** @param connectionsMax 0: this agent is not to be measured. */
  constructor(
    private readonly host: BenchHost,
    private readonly timers: Timers,
    private readonly connectionsMax: number = BENCH_CONDUITS_MAX,
  ) {}

  /**
   * A new connection to the target, if rules allow it.
   *
   * @param rules Of the agent; absent: all may be dialed.
   * @param onDecision Called with whether they allow it.
   * @throws {DialError} When they do not; and as `dial`.
   */
  dialBy(
    target: DialTarget,
    rules: RuleSet | undefined,
    onDecision?: (decision: RuleDecision) => void,
  ): Promise<Conduit> {
    const decision = decisionOf(target, rules);
    onDecision?.(decision);
    if (!decision.isAllowed) {
      return Promise.reject(refusal("agent", target, decision));
    }
    return this.dial();
  }

  /**
   * A new connection to the target, for agents without rules. @throws
   * {DialError} When there are too many.
   */
  dial(): Promise<Conduit> {
    if (this.#open >= this.connectionsMax) {
      return Promise.reject(new DialError("endpoint", this.#refusal));
    }
    this.#open++;
    return Promise.resolve(
      new BenchConduit(this.host, this.timers, () => {
        this.#open--;
      }),
    );
  }

  get #refusal(): string {
    return this.connectionsMax === 0
      ? "Cannot bench: this agent runs with --bench-target=false"
      : `Cannot bench: ${this.connectionsMax} bench connections are open at ` +
        "this agent; wait until another bench is over";
  }
}

/** Evaluated by its name alone: it has no address that a rule could be about. */
function decisionOf(
  target: DialTarget,
  rules: RuleSet | undefined,
): RuleDecision {
  if (rules === undefined) return { isAllowed: true, rule: "--bench-target" };
  const subject = subjectOf(target);
  const decision = subject.kind === "endpoint"
    ? rules.evaluateName(subject)
    : undefined;
  return decision ?? NOT_ALLOWED;
}

/** Whether a dial is for a bench target. */
export function isBenchDial({ protocol, address }: DialTarget): boolean {
  return address === BENCH_ADDRESS && protocol === "tcp";
}

// A bench target on a port (`tunnel bench --serve`), for nodes whose agent has
// none.

/** A bench target that listens. */
interface BenchServer {
  /** `ip:port`, as bound. */
  readonly address: string;
  /** No new connections. */
  close(): void;
}

/**
 * Opens the port.
 *
 * @param onProblem Trouble with the port, or a connection too many: one line.
 * @throws {ListenError}
 */
export function serveBench(
  at: ListenAddress,
  onProblem: (line: string) => void,
): BenchServer {
  const software = `tunnel/${VERSION}`;
  const targets = new BenchTargets({ agentId: "", software }, systemTimers);
  const serve = async (conn: Stream) => {
    try {
      const target = await targets.dial();
      await transfer(conduitOf(conn), target);
    } catch (error) {
      conn.close();
      if (!(error instanceof DialError)) throw error;
      onProblem(error.message);
    }
  };
  const listener = listenTcp(at, {
    onConnection: (conn) => unawaited("dial", serve(conn), () => conn.close()),
    onProblem,
  });
  return { address: listener.address, close: () => listener.close() };
}
