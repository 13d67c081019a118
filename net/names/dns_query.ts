/**
 * Queries name servers for the addresses of one name, both types at once.
 *
 * A server that is silent costs its turn and no more: the next one, or the same
 * again, is queried beside it, and the first answer is used. Each try has a
 * socket, and so a port, of its own, and each query an id that cannot be
 * guessed (RFC 5452).
 *
 * @module
 */

import { canonicalIp } from "../../proto/peer/ip_address.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  INTERNAL_ERROR,
  unawaited,
} from "../../platform/errors/internal_errors.ts";
import {
  type DatagramSocket,
  openDatagramSocket,
} from "../datagram/datagram_socket.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import {
  type DnsReply,
  encodeQuestion,
  readReply,
  type RecordType,
} from "./dns_message.ts";
import { queryByTcp } from "./dns_stream.ts";
import type { QuestionPace } from "./question_pace.ts";
import type { DnsConfig } from "./resolv_conf.ts";

/**
 * How long the other type is waited for when one has brought addresses: some
 * servers never answer a question for AAAA.
 */
export const OTHER_TYPE_MS = 500;

/** Answers that fit nothing, of one try: an attacker is guessing. */
export const STRAYS_MAX = 100;

/** What {@linkcode queryServers} needs. */
export interface DnsQueryOptions {
  /** In small letters, without a dot at its end. */
  readonly name: string;
  readonly config: DnsConfig;
  /** In the order in which they are to be queried. */
  readonly servers: readonly DatagramAddress[];
  readonly timers: Timers;
  /** Shared by all queries to the same servers. */
  readonly pace: QuestionPace;
  /** Gives it up; its reason is what is thrown. */
  readonly signal: AbortSignal;
  /** A server has answered. */
  answered?(server: DatagramAddress): void;
}

/** A final reply to a question; `timeout`: there was none. */
export type DnsOutcome =
  | Extract<DnsReply, { kind: "answer" | "failed" }>
  | { readonly kind: "timeout" };

/** @returns One outcome for each type that was queried. */
export function queryServers(
  options: DnsQueryOptions,
): Promise<readonly DnsOutcome[]> {
  return new Query(options).run();
}

/** A question, until there is an outcome. */
interface Pending {
  readonly type: RecordType;
  outcome: DnsOutcome | undefined;
  /** The last failure that a server answered. */
  failure: string;
}

class Query {
  readonly #pending: readonly Pending[];
  readonly #tries: Attempt[] = [];
  readonly #settled = Promise.withResolvers<readonly DnsOutcome[]>();
  readonly #ending = new AbortController();
  #timer: Timer | undefined;
  #otherTimer: Timer | undefined;
  #isOver = false;

  constructor(readonly options: DnsQueryOptions) {
    const types: readonly RecordType[] = options.config.hasNoIpv6
      ? ["A"]
      : ["A", "AAAA"];
    this.#pending = types.map((type) => ({
      type,
      outcome: undefined,
      failure: "",
    }));
  }

  /** Aborted when it is over. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  get unanswered(): readonly Pending[] {
    return this.#pending.filter(({ outcome }) => outcome === undefined);
  }

  run(): Promise<readonly DnsOutcome[]> {
    const { signal } = this.options;
    const onAbort = () => {
      this.#settled.reject(signal.reason);
      this.#end();
    };
    if (signal.aborted) onAbort();
    else {
      signal.addEventListener("abort", onAbort);
      this.next();
    }
    return this.#settled.promise.finally(() =>
      signal.removeEventListener("abort", onAbort)
    );
  }

  /** Queries the next server, or waits for those that were queried. */
  next(): void {
    if (this.#isOver) return;
    this.#timer?.cancel();
    const { servers, config, timers } = this.options;
    const index = this.#tries.length;
    if (index === servers.length * config.attempts) {
      if (this.#tries.every((each) => each.isOver)) return this.#giveUp();
      const rest = config.timeoutMs;
      this.#timer = timers.after(rest, () => this.#giveUp());
      return;
    }
    this.#timer = timers.after(config.tryMs, () => this.next());
    // What drops questions with options may let those without pass.
    const hasEdns = index < servers.length;
    const each = new Attempt(this, servers[index % servers.length]!, hasEdns);
    this.#tries.push(each);
    this.options.pace.run(() => each.begin());
  }

  /** A server has sent a final answer to a question. */
  take(pending: Pending, outcome: DnsOutcome, server: DatagramAddress): void {
    if (this.#isOver || pending.outcome !== undefined) return;
    if (outcome.kind === "failed") {
      pending.failure = outcome.why;
      return;
    }
    pending.outcome = outcome;
    this.options.answered?.(server);
    if (this.unanswered.length === 0) return this.#settle();
    const isFound = outcome.kind === "answer" && outcome.addresses.length > 0;
    if (!isFound) return;
    this.#otherTimer = this.options.timers.after(
      OTHER_TYPE_MS,
      () => this.#settle(),
    );
  }

  /** All that this try queried is answered, or never will be by it. */
  tryIsOver(each: Attempt): void {
    if (this.#isOver) return;
    const isLast = this.#tries.at(-1) === each;
    const isEnd = this.#tries.every((one) => one.isOver);
    if (isLast || isEnd) this.next();
  }

  #giveUp(): void {
    for (const pending of this.unanswered) {
      const { failure } = pending;
      pending.outcome = failure === ""
        ? { kind: "timeout" }
        : { kind: "failed", why: failure };
    }
    this.#settle();
  }

  #settle(): void {
    this.#settled.resolve(
      this.#pending.map(({ outcome }) => outcome ?? { kind: "timeout" }),
    );
    this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#otherTimer?.cancel();
    for (const each of this.#tries) each.close();
    this.#ending.abort();
  }
}

/** A question of a try. */
interface Question {
  readonly id: number;
  readonly pending: Pending;
  /** This try will bring nothing more. */
  isOver: boolean;
  /** It is queried by TCP as well, once, however many answers are truncated. */
  isByTcp: boolean;
}

/** One server, queried once, for what is not answered yet. */
class Attempt {
  readonly #host: string;
  #questions: Question[] = [];
  #hasEdns: boolean;
  #socket: DatagramSocket | undefined;
  #hasBegun = false;
  #isClosed = false;
  #strays = 0;

  constructor(
    private readonly query: Query,
    private readonly server: DatagramAddress,
    hasEdns: boolean,
  ) {
    this.#host = canonicalIp(server.hostname);
    this.#hasEdns = hasEdns;
  }

  get isOver(): boolean {
    return this.#isClosed ||
      this.#hasBegun && this.#questions.every(({ isOver }) => isOver);
  }

  begin(): void {
    if (this.#isClosed) return;
    this.#hasBegun = true;
    this.#questions = this.query.unanswered.map((pending, index) => ({
      id: numberFor(index),
      pending,
      isOver: false,
      isByTcp: false,
    }));
    if (this.query.options.config.usesTcp) {
      for (const question of this.#questions) this.#queryByTcp(question);
      return;
    }
    const hostname = this.#host.includes(":") ? "::" : "0.0.0.0";
    const opening = openDatagramSocket(
      { hostname, port: 0 },
      { peer: this.server },
    ).then(
      (socket) => this.#opened(socket),
      (error) => this.#failed(error),
    );
    unawaited("dial", opening, () => this.#failed(new Error(INTERNAL_ERROR)));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket?.close();
  }

  #opened(socket: DatagramSocket): void {
    if (this.#isClosed) return socket.close();
    this.#socket = socket;
    socket.listen({
      onDatagram: (bytes, hostname, port) => {
        if (port !== this.server.port) return;
        if (hostname !== this.#host && canonicalIp(hostname) !== this.#host) {
          return;
        }
        this.#receive(bytes);
      },
      onError: (error) => this.#failed(error),
    });
    for (const question of this.#questions) this.#ask(question);
  }

  #ask({ id, pending }: Question): void {
    const { name } = this.query.options;
    const { type } = pending;
    const bytes = encodeQuestion({ name, type }, id, this.#hasEdns);
    this.#socket?.send(bytes, this.server);
  }

  #receive(bytes: Uint8Array): void {
    const { name } = this.query.options;
    for (const question of this.#questions) {
      const { type } = question.pending;
      const reply = readReply(bytes, { name, type }, question.id);
      if (reply === undefined || question.isOver) continue;
      return this.#take(question, reply);
    }
    // A right one may still come, by the next try's port.
    if (++this.#strays === STRAYS_MAX) this.#failed(new Error("too many"));
  }

  #take(question: Question, reply: DnsReply): void {
    if (reply.kind === "truncated") return this.#queryByTcp(question);
    if (reply.kind === "plainer") {
      if (!this.#hasEdns) return this.#over(question, MISBEHAVING);
      this.#hasEdns = false;
      for (const each of this.#questions) if (!each.isOver) this.#ask(each);
      return;
    }
    this.#over(question, reply);
  }

  #over(question: Question, outcome: DnsOutcome): void {
    question.isOver = true;
    this.query.take(question.pending, outcome, this.server);
    if (!this.#isClosed && this.isOver) this.#end();
  }

  #queryByTcp(question: Question): void {
    if (question.isByTcp) return;
    question.isByTcp = true;
    const { name } = this.query.options;
    const asked = { name, type: question.pending.type };
    const answering = queryByTcp(this.server, asked, this.query.ending).then(
      (reply) => {
        const isFinal = reply.kind === "answer" || reply.kind === "failed";
        if (!question.isOver) {
          this.#over(question, isFinal ? reply : MISBEHAVING);
        }
      },
      (error) => {
        if (!this.#isClosed) this.#over(question, failureOf(error));
      },
    );
    unawaited("dial", answering, () => this.#failed(new Error(INTERNAL_ERROR)));
  }

  /** There is no listener, or no socket to send with. */
  #failed(error: Error): void {
    if (this.#isClosed) return;
    for (const question of this.#questions) {
      if (question.isOver) continue;
      question.isOver = true;
      this.query.take(question.pending, failureOf(error), this.server);
    }
    this.#end();
  }

  #end(): void {
    this.close();
    this.query.tryIsOver(this);
  }
}

const MISBEHAVING = { kind: "failed", why: "server misbehaving" } as const;

/** Words for errors of the kernel. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "the name server refuses connections"],
  ["connection refused", "the name server refuses connections"],
  ["EMFILE", "socket: too many open files"],
  ["ENFILE", "socket: too many open files in system"],
  ["ENETUNREACH", "the name server cannot be reached"],
  ["EHOSTUNREACH", "the name server cannot be reached"],
]);

function failureOf(error: unknown): DnsOutcome {
  const { message } = error instanceof Error ? error : new Error();
  const why = WORDS.get(codeOf(error)) ?? WORDS.get(message) ?? MISBEHAVING.why;
  return { kind: "failed", why };
}

/** It cannot be guessed, and no two questions of a try have the same. */
function numberFor(index: number): number {
  const [number] = crypto.getRandomValues(new Uint16Array(1));
  return (number! & 0xfffe) | (index & 1);
}
