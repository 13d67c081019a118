/**
 * The metrics of discovery (`tunnel_server_discovery_…`), in the line of Pilot's.
 *
 * Series are looked up once: a push to a thousand clients counts thousands of
 * things. Labels are kinds and forms, never what a client says.
 *
 * @module
 */

import { clipped, quoted } from "../../../proto/peer/quoted.ts";
import type { Log } from "../../../platform/log/log.ts";
import type {
  Histogram,
  LabelledSeries,
  MetricRegistry,
  Series,
} from "../../../platform/metrics/metrics.ts";
import {
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import type { DiscoveryRequest } from "../../../proto/xds/discovery.ts";
import type { Quota } from "../access/quota.ts";
import type { SubscriberStream } from "./subscriber_stream.ts";
import { FOREIGN_TYPE_LENGTH_MAX } from "../subscriptions/xds_stream_state.ts";

const PREFIX = "tunnel_server_discovery_";

/** In seconds: from a push to one client to a push to ten thousand. */
// deno-fmt-ignore: one line is enough for a list of numbers.
const SECONDS_BOUNDS = [.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30];

/** Characters of a client's message that are logged. */
const QUOTE_LENGTH_MAX = 500;

/** Limit on clients with a metric series of their own for refusals. */
const REJECTERS_MAX = 100;

/** Of a client in a label. */
const NAME_LENGTH_MAX = 100;

/** The last of gRPC's codes. */
const CODE_MAX = 16;

/**
 * Plain counters, and their help texts. The names are in quotes, so that a
 * search finds them.
 */
const COUNTERS = {
  "pushes_total": "Times that changes were sent to all clients.",
  "merged_changes_total":
    "Changes that were sent together with an earlier one.",
  "stalled_clients_reset_total":
    "Streams ended because the client read no byte of a response.",
  "turned_away_total":
    "Streams refused at their begin: unauthenticated, or a quota used up.",
};

/** Those with a series for each kind of resource. */
const BY_TYPE = {
  "requests_total": "Requests, ACKs among them.",
  "responses_total": "Responses.",
  "response_bytes_total": "Bytes of responses, before they are framed.",
  "rejects_total": "Responses that clients refused (NACK).",
};

const HISTOGRAMS = {
  "push_seconds": "From the begin of a push until the last client's turn.",
  "queue_seconds": "How long clients wait for their turn in a push.",
  "convergence_seconds":
    "From a change until a client has acknowledged all of it.",
};

/** The values that each scrape reads. */
export interface DiscoveryFigures {
  readonly streams: ReadonlySet<SubscriberStream>;
  /** Services of which something is not served, over all groups. */
  readonly unservedCount: number;
}

/** See the module description. */
export class DiscoveryMetrics {
  readonly counters: Readonly<Record<keyof typeof COUNTERS, Series>>;
  readonly #byType: Readonly<Record<keyof typeof BY_TYPE, BySort>>;
  readonly histograms: Readonly<Record<keyof typeof HISTOGRAMS, Histogram>>;
  readonly #rejectsByClient: LabelledSeries;
  readonly #rejecters = new Set<string>();

  constructor(
    registry: MetricRegistry,
    private readonly log: Log,
    figures: DiscoveryFigures,
  ) {
    this.counters = each(
      COUNTERS,
      (name, help) => registry.series("counter", name, help),
    );
    this.#byType = each(BY_TYPE, (name, help) => bySort(registry, name, help));
    this.#rejectsByClient = registry.labelled(
      "counter",
      `${PREFIX}rejects_by_client_total`,
      "Responses refused, by client and gRPC code; of many clients the first.",
      ["client", "code"],
    );
    this.histograms = each(
      HISTOGRAMS,
      (name, help) => registry.histogram(name, help, SECONDS_BOUNDS),
    );
    registry.computedLabelled(
      "gauge",
      `${PREFIX}clients`,
      "Subscribers, by form and by what their streams are.",
      ["form", "mode"],
      () => countClients(figures.streams),
    );
    registry.computed(
      "gauge",
      `${PREFIX}unserved`,
      "Ports of services that some clients may see and cannot be served.",
      () => figures.unservedCount,
    );
  }

  /** The stream is a subscriber now. */
  joined({ subscriber, group, origin, form, quota }: SubscriberStream): void {
    if (!this.#mayLog(quota)) return;
    this.log.event("discovery client joined", {
      client: subscriber!.name,
      form: group!.form,
      mode: form.mode,
      from: origin.remoteAddress,
      software: subscriber!.xdsNode.userAgentName,
    });
  }

  /** The stream is over, whether it had joined or not. */
  ended({ subscriber, origin, quota }: SubscriberStream, reason: string): void {
    if (!this.#mayLog(quota)) return;
    const from = origin.remoteAddress;
    const client = subscriber === undefined ? {} : { client: subscriber.name };
    this.log.event(`discovery client gone: ${reason}`, { ...client, from });
  }

  requested(
    kind: ResourceKind | undefined,
    { subscriber }: SubscriberStream,
    { responseNonce, errorDetail }: DiscoveryRequest,
  ): void {
    this.#byType.requests_total[kind ?? "other"].add();
    if (!this.log.wantsDetails) return;
    const what = errorDetail !== undefined
      ? "NACK"
      : responseNonce === ""
      ? "request"
      : "ACK";
    this.log.detail(`discovery ${what}`, {
      client: subscriber?.name ?? "",
      kind: kind ?? "other",
      nonce: responseNonce,
    });
  }

  /** The client asks for the first time for a type that is not served. */
  unserved({ subscriber, quota }: SubscriberStream, typeUrl: string): void {
    if (!this.#mayLog(quota)) return;
    this.log.warn(
      "a discovery client asks for what is not served here and may wait for " +
        `it: ${JSON.stringify(typeUrl.slice(0, FOREIGN_TYPE_LENGTH_MAX))}`,
      { code: "TUN708", client: subscriber!.name },
    );
  }

  sent(kind: ResourceKind, bytes: number): void {
    this.#byType.responses_total[kind].add();
    this.#byType.response_bytes_total[kind].add(bytes);
  }

  nacked(
    { subscriber, quota }: SubscriberStream,
    kind: ResourceKind,
    reason: string,
    code: number,
  ): void {
    this.#byType.rejects_total[kind].add();
    this.#rejectsOf(clipped(subscriber!.name, NAME_LENGTH_MAX), code).add();
    if (!this.#mayLog(quota)) return;
    this.log.warn(
      `a discovery client rejects a response and keeps what it has: ${
        quoted(reason, QUOTE_LENGTH_MAX)
      }`,
      { code: "TUN708", client: subscriber!.name, kind },
    );
  }

  /** Clients choose their names: those behind the first are one. */
  #rejectsOf(name: string, code: number): Series {
    const isKnown = this.#rejecters.has(name) ||
      this.#rejecters.size < REJECTERS_MAX;
    if (isKnown) this.#rejecters.add(name);
    const shown = code >= 0 && code <= CODE_MAX ? String(code) : "other";
    return this.#rejectsByClient.with(isKnown ? name : "others", shown);
  }

  #mayLog(quota: Quota): boolean {
    const { line, name } = quota;
    if (line === "no more") {
      this.log.warn(
        `too many log lines about discovery of ${name}: more are omitted ` +
          "from now on, see `tunnel xds status`",
        { code: "TUN708" },
      );
    }
    return line === "one";
  }
}

/** Makes a metric of each name and its help. */
function each<Name extends string, Made>(
  helps: Readonly<Record<Name, string>>,
  make: (name: string, help: string) => Made,
): Readonly<Record<Name, Made>> {
  const made = Object.entries<string>(helps)
    .map(([name, help]) => [name, make(`${PREFIX}${name}`, help)]);
  return Object.fromEntries(made);
}

/** One series for each kind; `other` for types that are not served. */
type BySort = Readonly<Record<ResourceKind | "other", Series>>;

function bySort(registry: MetricRegistry, name: string, help: string): BySort {
  const family = registry.labelled("counter", name, help, ["type"]);
  const sorts = [...RESOURCE_KINDS, "other"] as const;
  return Object.fromEntries(
    sorts.map((sort) => [sort, family.with(sort)]),
  ) as BySort;
}

function countClients(
  streams: Iterable<SubscriberStream>,
): Iterable<readonly [readonly string[], number]> {
  const counts = new Map<string, [readonly string[], number]>();
  for (const { group, form } of streams) {
    if (group === undefined) continue;
    const key = `${group.form} ${form.mode}`;
    const count = counts.get(key);
    if (count === undefined) counts.set(key, [[group.form, form.mode], 1]);
    else count[1]++;
  }
  return counts.values();
}
