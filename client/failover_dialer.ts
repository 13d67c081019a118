/**
 * Dials over the first of several servers that can serve: when a server is
 * away, refuses us, is draining or has no agent for a dial, the next is asked
 * at once; when a server is silent, the next races it. A server that has failed
 * is tried last for a while, and until another one fails.
 *
 * What the caller has said leaves over one server only
 * (`platform/time/race.ts`). So a server is asked at once, and what the caller
 * has said follows when that server has shown that it lives
 * (`Connection.isProven`): at once, too, if it answered a PING within its last
 * round trip; with the answer to the dial, where that comes soon. Until then
 * the dial can go to another server. If the server stands still afterwards, the
 * dial fails: the target may have heard it.
 *
 * What a target or a policy says is final. It refuses to know how a server is
 * reached and asked.
 *
 * @module
 */

import {
  AttemptOrder,
  FAILED_MS,
  REFUSED_MS,
} from "../net/dial/attempt_order.ts";
import { ConnectError } from "../net/dial/server_connect.ts";
import {
  type Attempt,
  type NextDoubt,
  PromisedRace,
} from "../platform/time/race.ts";
import { abandon } from "../proto/link/dial_handler.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import { toTunnelDialError, TunnelDialError } from "./dial_error.ts";
import {
  type DialStarter,
  saysNothing,
  type TunnelDial,
} from "./dial_starter.ts";

/** A server that has not answered after this time is raced by the next. */
export const FAILOVER_SILENT_MS = 1_000;

/** At this time it is asked for a sign of life: its target may be slow. */
export const SUSPECT_MS = 500;

/**
 * Limits on the servers that an error names, and on the letters of each one's
 * words.
 */
const TOLD_MAX = 6;
const TOLD_LENGTH_MAX = 300;

/** One of several servers. */
export interface NamedServer {
  /** For people; the names differ. */
  readonly name: string;
  readonly starter: DialStarter;
}

/** See the module description. */
export class FailoverDialer implements DialStarter {
  readonly #order: AttemptOrder;

  constructor(
    private readonly servers: readonly NamedServer[],
    private readonly timers: Timers,
  ) {
    this.#order = new AttemptOrder(timers);
  }

  start(dial: TunnelDial, signal: AbortSignal): Promise<Conduit> {
    const queue = this.#order.order(this.servers, ({ name }) => name);
    const going = new FailoverDial(
      dial,
      queue,
      this.timers,
      ({ name }, ms) => this.#order.took(name, ms),
    );
    return going.run(signal);
  }

  isUnheard(waitedMs: number): boolean {
    return this.servers.every(({ starter }) => starter.isUnheard?.(waitedMs));
  }

  suspect(why: "for another" | "for words"): () => boolean {
    const heard = this.servers.map(({ starter }) => starter.suspect?.(why));
    return () => heard.some((isHeard) => isHeard?.() !== false);
  }

  close(): void {
    for (const { starter } of this.servers) starter.close();
  }
}

/** One server that is asked. */
interface AskedServer {
  readonly server: NamedServer;
  /** Set when it was asked whether it is there; absent: that cannot be asked. */
  isHeard?: (() => boolean) | undefined;
  isSilent: boolean;
}

type ServerAttempt = Attempt<AskedServer, Conduit>;

/** Why servers did not serve. */
type Failures = Map<NamedServer, Error>;

/** One dial, until a server has given the final answer. */
class FailoverDial extends PromisedRace<AskedServer, Conduit> {
  readonly #failures: Failures = new Map();
  #isSecondRound = false;
  /**
   * A server's answer about the target, while an earlier server may still
   * connect.
   */
  #verdict: unknown;

  constructor(
    private readonly dial: TunnelDial,
    private readonly queue: NamedServer[],
    timers: Timers,
    /** After a failure it is tried after the others for this long. */
    private readonly setBack: (server: NamedServer, ms: number) => void,
  ) {
    super(timers, SUSPECT_MS);
  }

  protected begin(): void {
    this.#askNext();
  }

  /** @returns Whether there was another one. */
  #askNext(): boolean {
    const server = this.queue.shift();
    if (server === undefined) return false;
    this.enter({ server, isSilent: false });
    return true;
  }

  protected ask(attempt: ServerAttempt): void {
    const giveUp = new AbortController();
    attempt.pending = { cancel: () => giveUp.abort(QUICKER) };
    const hasOthers = this.queue.length > 0 || this.dial.hasOthers === true;
    const asking = attempt.asked.server.starter.start(
      { ...this.dial, hasOthers },
      giveUp.signal,
      () => this.#onSending(attempt),
    );
    this.follow(attempt, asking);
  }

  /** @throws {DialError} When another server has it, or may have it. */
  #onSending(attempt: ServerAttempt): void {
    if (saysNothing(this.dial)) return;
    if (!this.isRunning(attempt)) throw QUICKER;
    // They may not say it any more; they are asked again if that is lost.
    const others = this.sayTo(attempt).map(({ asked }) => asked.server);
    this.queue.unshift(...others);
  }

  protected override doubt(attempt: ServerAttempt, times: number): NextDoubt {
    if (times === 0) {
      this.suspect(attempt);
      return FAILOVER_SILENT_MS - SUSPECT_MS;
    }
    // The server may have stopped, or the target may be slow.
    const { asked } = attempt;
    asked.isSilent = true;
    // Later dials should begin with another server.
    if (asked.isHeard?.() !== true) this.setBack(asked.server, FAILED_MS);
    if (this.hearer === undefined) this.#askNext();
    return "watch";
  }

  protected override suspect({ asked }: ServerAttempt): void {
    asked.isHeard = asked.server.starter.suspect?.("for another");
  }

  protected override isSilent({ asked }: ServerAttempt): boolean {
    return asked.isHeard?.() === false;
  }

  protected override frozen({ asked: { server } }: ServerAttempt): void {
    this.lose(
      new DialError(
        "link-lost",
        `server ${server.name} hangs; the first bytes may have ` +
          "reached the target, so no other server is asked",
      ),
    );
  }

  protected won(_attempt: ServerAttempt, conduit: Conduit): void {
    this.succeed(conduit);
  }

  protected discard(conduit: Conduit): void {
    abandon(conduit, QUICKER.message);
  }

  protected lost(
    { asked: { server } }: ServerAttempt,
    error: unknown,
    hasHeard: boolean,
  ): void {
    if (!isOfServer(error, hasHeard)) return this.#onFinal(error);
    if (!isAnswer(error)) this.setBack(server, failingMs(error));
    this.#failures.set(server, error);
    if (this.#askNext() || this.running.length > 0) return;
    if (!isAnswer(error) && this.#askAgain(server)) return;
    this.lose(this.#verdict ?? together(this.#failures));
  }

  /**
   * The last server went away. Earlier ones that could not serve for a moment
   * may be able to now: when servers are restarted in order, one of them always
   * serves, but each may have been asked at its wrong moment.
   *
   * @returns Whether one is asked.
   */
  #askAgain(last: NamedServer): boolean {
    if (this.#isSecondRound) return false;
    this.#isSecondRound = true;
    for (const [server, error] of this.#failures) {
      const isMoment = isAnswer(error) || failingMs(error) === REFUSED_MS;
      if (server !== last && isMoment) this.queue.push(server);
    }
    return this.#askNext();
  }

  /**
   * One server's answer about the target counts, unless an earlier one
   * connects.
   */
  #onFinal(error: unknown): void {
    const isAwaited = this.running.some(({ asked: { isSilent, isHeard } }) =>
      isSilent && isHeard?.() !== false
    );
    if (isAwaited) this.#verdict ??= error;
    else this.lose(error);
  }
}

const QUICKER = new DialError("cancelled", "another server was quicker");

/**
 * Whether another server may do better, without sending the caller's bytes
 * twice.
 *
 * @param hasSaid The caller's bytes have left, or may have.
 */
function isOfServer(error: unknown, hasSaid: boolean): error is Error {
  if (error instanceof DialError) {
    if (isAnswer(error) || error.loss === "unprocessed") return true;
    // The connection to it went, or its link to the agent.
    return error.reason === "link-lost" && !hasSaid;
  }
  if (error instanceof TunnelDialError) return error.reason === "streamsetup";
  // Errors in our own code are passed on unchanged.
  return error instanceof Error && !(error instanceof TypeError) &&
    !(error instanceof RangeError);
}

/** The server is well, and has no agent for the dial. */
function isAnswer(error: Error): boolean {
  if (!(error instanceof DialError) || error.loss !== undefined) return false;
  // Konnectivity's servers have no other sign.
  return error.reason === "no-agent" || NO_AGENT.test(error.message);
}

const NO_AGENT = /^(?:No agent available|currently no tunnels available)\b/i;

/** One that is started again is back soon. */
function failingMs(error: Error): number {
  if (error instanceof DialError) return REFUSED_MS;
  const reason = error instanceof TunnelDialError ? error.cause : error;
  const isRefused = reason instanceof ConnectError && reason.isRefused;
  return isRefused ? REFUSED_MS : FAILED_MS;
}

/** Each sentence once, and which servers said it. */
function together(failures: Failures): TunnelDialError {
  const bySentence = new Map<string, string[]>();
  for (const [{ name }, error] of [...failures].slice(0, TOLD_MAX)) {
    const sentence = error.message.slice(0, TOLD_LENGTH_MAX);
    const names = bySentence.get(sentence) ?? [];
    bySentence.set(sentence, [...names, name]);
  }
  const told = [...bySentence].map(([sentence, names]) => {
    const unnamed = names.filter((name) => !sentence.includes(name));
    return unnamed.length === 0
      ? sentence
      : `${sentence} (server ${unnamed.join(", ")})`;
  });
  const rest = failures.size - TOLD_MAX;
  if (rest > 0) told.push(`and ${rest} more servers`);
  const message = told.join("; ");
  const answered = [...failures.values()]
    .findLast((error) => error instanceof DialError);
  return answered === undefined
    ? new TunnelDialError("streamsetup", message)
    : toTunnelDialError(new DialError(answered.reason, message));
}
