/**
 * Names to addresses by DNS: search domains, one after another, as
 * resolv.conf(5) has them.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { type DnsOutcome, queryServers } from "./dns_query.ts";
import { type HostName } from "./host_name.ts";
import { NAME_LENGTH_MAX } from "../../proto/peer/dns_name.ts";
import { QuestionPace } from "./question_pace.ts";
import { LookupError } from "./resolver.ts";
import type { DnsConfig } from "./resolv_conf.ts";

/** What is known of a name by DNS. */
export interface DnsFinding {
  /** Empty: there is no such name, or none with addresses. */
  readonly addresses: readonly string[];
  /** Seconds for which that is so. */
  readonly ttl: number;
}

export class DnsClient {
  readonly #pace: QuestionPace;
  /**
   * The server that answered last is queried first: a dead one costs one wait.
   */
  #lastToAnswer: DatagramAddress | undefined;
  #turn = 0;

  constructor(private readonly timers: Timers) {
    this.#pace = new QuestionPace(timers);
  }

  /**
   * @param host As it was requested, for errors.
   * @throws {LookupError} `timeout` or `failed`.
   */
  async find(
    { name, isAbsolute }: HostName,
    host: string,
    config: DnsConfig,
    signal: AbortSignal,
  ): Promise<DnsFinding> {
    let ttl = Infinity;
    let failure: LookupError | undefined;
    for (const candidate of candidates(name, isAbsolute, config)) {
      const outcomes = await queryServers({
        name: candidate,
        config,
        servers: this.#order(config),
        timers: this.timers,
        pace: this.#pace,
        signal,
        answered: (server) => this.#lastToAnswer = server,
      });
      const found = findingOf(outcomes);
      if (found !== undefined && found.addresses.length > 0) return found;
      ttl = Math.min(ttl, found?.ttl ?? 0);
      if (found !== undefined) continue;
      // A server that is silent for one name is not queried for others.
      if (outcomes.some(({ kind }) => kind === "timeout")) {
        throw new LookupError(host, "", "timeout");
      }
      failure ??= new LookupError(host, whyOf(outcomes), "failed");
    }
    if (failure !== undefined) throw failure;
    return { addresses: [], ttl: Number.isFinite(ttl) ? ttl : 0 };
  }

  #order({ servers, rotates }: DnsConfig): readonly DatagramAddress[] {
    const first = rotates ? this.#turn++ % servers.length : Math.max(
      0,
      servers.findIndex((one) => isSame(one, this.#lastToAnswer)),
    );
    return [...servers.slice(first), ...servers.slice(0, first)];
  }
}

function isSame(a: DatagramAddress, b: DatagramAddress | undefined): boolean {
  return a.hostname === b?.hostname && a.port === b.port;
}

/** The names to be queried in turn (resolv.conf(5): search, ndots). */
export function candidates(
  name: string,
  isAbsolute: boolean,
  { search, ndots }: Pick<DnsConfig, "search" | "ndots">,
): string[] {
  if (isAbsolute) return [name];
  const longer = search.map((domain) => `${name}.${domain}`)
    .filter((each) => each.length <= NAME_LENGTH_MAX);
  const dots = name.split(".").length - 1;
  return dots >= ndots ? [name, ...longer] : [...longer, name];
}

/** @returns `undefined` when a server that should know the answer failed. */
function findingOf(outcomes: readonly DnsOutcome[]): DnsFinding | undefined {
  const answers = outcomes.filter((one) => one.kind === "answer");
  const found = answers.filter(({ addresses }) => addresses.length > 0);
  if (found.length > 0) return mergedOf(found);
  // A name that does not exist does so for no type.
  const isGone = answers.some(({ exists }) => !exists);
  return isGone || answers.length === outcomes.length
    ? mergedOf(answers)
    : undefined;
}

function mergedOf(
  answers: readonly { addresses: readonly string[]; ttl: number }[],
): DnsFinding {
  return {
    addresses: answers.flatMap(({ addresses }) => addresses),
    ttl: Math.min(...answers.map(({ ttl }) => ttl)),
  };
}

function whyOf(outcomes: readonly DnsOutcome[]): string {
  const failed = outcomes.find((one) => one.kind === "failed");
  return failed?.why ?? "server misbehaving";
}
