/**
 * The sources of names, and their order: the line `hosts:` of a
 * nsswitch.conf(5) file, as far as it can be done here. What cannot (LDAP, NIS,
 * mDNS and so on) is left to the platform, which has the C library do it.
 *
 * @module
 */

import type { NameServers } from "./dns_lookup.ts";
import { domainOf, isIn } from "./host_name.ts";
import { wordsOf } from "./hosts_file.ts";
import { type LookupLimits, LookupQueue } from "./lookup_queue.ts";
import { LookupError } from "./resolver.ts";
import { lookup } from "node:dns";
import { codeOf } from "../../platform/errors/error_code.ts";
import type { Timers } from "../../proto/sync/clock.ts";

/** Sources that are asked here. */
export type NameSource = "files" | "dns";

/** The C library's default without such a file. */
const USUAL = ["files", "dns"];

/**
 * The sources that are asked before the platform, which has the last word: it
 * asks all sources again, those that were skipped here as well.
 *
 * @param text The file's text; empty: there is no file.
 */
export function nameSourcesOf(
  text: string,
  name: string,
  servers: NameServers,
): NameSource[] {
  const sources: NameSource[] = [];
  let last: ReturnType<typeof sourceOf> = "skip";
  for (const word of hostsLine(text) ?? USUAL) {
    if (word.startsWith("[")) {
      // For a source that was left out; or the default action.
      if (last === "skip" || USUAL_ACTIONS.has(word)) continue;
      break;
    }
    last = sourceOf(word, name, servers);
    if (last === "platform") break;
    if (last !== "skip" && !sources.includes(last)) sources.push(last);
  }
  return sources;
}

/** Its words, an action with its brackets being one; `undefined`: no such line. */
function hostsLine(text: string): string[] | undefined {
  const line = /^[ \t]*hosts:([^#\n]*)/m.exec(text)?.[1];
  if (line === undefined) return undefined;
  const spaced = line.replaceAll(
    /\[([^\]]*)\]/g,
    (_, inside: string) => ` [${inside.trim().replaceAll(/\s+/g, ",")}] `,
  );
  return wordsOf(spaced.toLowerCase());
}

/** `skip`: it does not know such names. */
function sourceOf(
  word: string,
  name: string,
  servers: NameServers,
): NameSource | "skip" | "platform" {
  const hasDots = name.includes(".");
  const isLocal = isIn(name, "local");
  switch (word) {
    case "files":
      return "files";
    case "dns":
      return servers === "special" ? "platform" : "dns";
    case "resolve":
      return servers === "stub" && hasDots && !isLocal ? "dns" : "platform";
    case "myhostname": // This machine.
    case "mymachines": // Containers of this machine.
      return hasDots ? "skip" : "platform";
    default:
      return !isLocal && /^mdns[46]?(?:_minimal)?$/.test(word)
        ? "skip"
        : "platform";
  }
}

/** Others are the C library's affair. */
const USUAL_ACTIONS: ReadonlySet<string> = new Set([
  "[success=return]",
  "[notfound=continue]",
  "[unavail=continue]",
  "[tryagain=continue]",
  "[!unavail=return]",
]);

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
