/**
 * Names looked up by the platform, with the C library (getaddrinfo) in one of
 * few threads. A thread that is stuck there cannot be freed, and reading files
 * needs the same threads, so few names are looked up at a time.
 *
 * Not `Deno.resolveDns`: that queries name servers only.
 *
 * @module
 */

import { lookup } from "node:dns";
import type { Timers } from "../../proto/sync/clock.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import { domainOf } from "./host_name.ts";
import { type LookupLimits, LookupQueue } from "./lookup_queue.ts";
import { LookupError } from "./resolver.ts";

/** The platform has 32 threads, for files too. */
export const PLATFORM_LIMITS: LookupLimits = {
  running: 8,
  perDomain: 2,
  waiting: 1_024,
  timeoutMs: 10_000,
};

/** Codes that mean "there is no such name", and no more. */
const NOT_FOUND: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA"]);

/** Servers were asked, and answered SERVFAIL or nonsense, or not at all. */
const NO_ANSWER = "EAI_AGAIN";

/** The platform's look-up; handed in, so that tests can answer. */
export type PlatformLookup = (host: string) => Promise<readonly string[]>;

export class PlatformNames {
  readonly #queue: LookupQueue;

  constructor(
    timers: Timers,
    private readonly lookup: PlatformLookup = platformLookup,
  ) {
    this.#queue = new LookupQueue(PLATFORM_LIMITS, timers);
  }

  /**
   * @returns Nothing: there is no such name.
   * @throws {LookupError | QueueError}
   */
  find(host: string): Promise<readonly string[]> {
    return this.#queue.run(
      domainOf(host.toLowerCase()),
      () => this.lookup(host),
    );
  }
}

function platformLookup(host: string): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    lookup(host, { all: true, verbatim: true }, (error, found) => {
      if (error === null) return resolve(found.map(({ address }) => address));
      const code = codeOf(error);
      if (NOT_FOUND.has(code)) return resolve([]);
      const why = code === NO_ANSWER
        ? "server misbehaving"
        : `the resolver failed: ${code || error.message}`;
      reject(new LookupError(host, why, "failed"));
    });
  });
}
