/**
 * Problems between servers of one service: two with one id, authorities without
 * a common one, clocks that differ. Each is logged once, with a remedy, and
 * counted for as long as it lasts.
 *
 * @module
 */

import type { MetricRegistry, Sample } from "../../platform/metrics/metrics.ts";
import { quoted } from "../../proto/peer/quoted.ts";
import { SERVER_PREFIX } from "../metrics/metric_families.ts";
import type { MemberRecord } from "./member_record.ts";
import type { Member } from "./members.ts";

/** Earlier, one of two with the same id may be the other's successor. */
export const PEERS_ONE_ID_MS = 30_000;

/** Certificates and tokens forgive less than an hour, logs nothing. */
export const CLOCK_MS = 30_000;

/** Longest id of another server that is shown. */
const ID_SHOWN = 100;

/** What may be wrong. */
const KINDS = ["duplicate-id", "other-authority", "other-clock"] as const;
type Kind = typeof KINDS[number];

/** What `PeerProblems` needs from outside. */
export interface PeerProblemsOptions {
  readonly metrics: MetricRegistry;
  warn(line: string): void;
}

/** Something that is wrong with another server now. */
export interface PeerProblem {
  readonly kind: Kind;
  readonly serverId: string;
  readonly message: string;
  /** Milliseconds (clock) since when it is known. */
  readonly sinceMs: number;
}

/** What this server would publish now, and the clocks. */
export interface Here {
  readonly record: MemberRecord;
  /** Milliseconds (clock) now. */
  readonly nowMs: number;
}

export class PeerProblems {
  /** Those that there are, so that each is said once. */
  #said = new Map<string, PeerProblem>();

  constructor(private readonly options: PeerProblemsOptions) {
    options.metrics.computedLabelled(
      "gauge",
      `${SERVER_PREFIX}peer_problems`,
      "Other servers with which something is wrong, by what: duplicate-id, " +
        "other-authority or other-clock.",
      ["problem"],
      () =>
        KINDS.map((kind): Sample => [
          [kind],
          this.current.filter((problem) => problem.kind === kind).length,
        ]),
    );
  }

  /** The problems at the last look. */
  get current(): readonly PeerProblem[] {
    return [...this.#said.values()];
  }

  /** Looks at all other servers. */
  look(here: Here, others: Iterable<Member>): void {
    const said = new Map<string, PeerProblem>();
    for (const member of others) {
      for (const [kind, line] of problemsOf(here, member)) {
        const key = JSON.stringify([kind, member.record.instanceId]);
        const before = this.#said.get(key);
        if (before === undefined) this.options.warn(line);
        const sinceMs = before?.sinceMs ?? here.nowMs;
        const { serverId } = member.record;
        said.set(key, { kind, serverId, message: line, sinceMs });
      }
    }
    this.#said = said;
  }
}

function* problemsOf(
  { record: own, nowMs }: Here,
  { record, sinceMs, aheadMs: ahead = 0 }: Member,
): Iterable<[Kind, string]> {
  const who = `server ${quoted(record.serverId, ID_SHOWN)}` +
    (record.address === "" ? "" : ` at ${record.address}`);
  if (record.serverId === own.serverId && nowMs - sinceMs >= PEERS_ONE_ID_MS) {
    yield [
      "duplicate-id",
      `${who} is another process with this server's id: agents take the two ` +
      "for one, and link to only one of them behind one address; give each " +
      "its own --server-id",
    ];
  }
  const isForeign = own.authorities.length > 0 &&
    record.authorities.length > 0 &&
    !record.authorities.some((id) => own.authorities.includes(id));
  if (isForeign) {
    yield [
      "other-authority",
      `${who} trusts none of this server's certificate authorities: an agent ` +
      "of the one is refused by the other; let both use one state (--state) " +
      "or give both the same --cluster-ca-cert",
    ];
  }
  if (Math.abs(ahead) > CLOCK_MS) {
    const seconds = Math.round(Math.abs(ahead) / 1_000);
    yield [
      "other-clock",
      `the clock of ${who} is ${seconds} s ${
        ahead > 0 ? "ahead" : "behind"
      }: ` +
      "certificates and tokens may count on one server and not on the other; " +
      "set both by NTP",
    ];
  }
}
