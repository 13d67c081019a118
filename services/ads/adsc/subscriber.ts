/**
 * A client of discovery for tests by hand: it subscribes as a given kind of
 * client, shows what it receives, and waits until conditions are met.
 *
 * @module
 */

import type { Code } from "../../../proto/codes/codes.ts";
import { StatusCode } from "../../../proto/grpc/status.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import type {
  DiscoveryMode,
  DiscoveryNode,
} from "../../../proto/xds/discovery.ts";
import type { Upstream } from "../../../net/channel/upstream.ts";
import { AdsClient } from "../ads_client.ts";
import { AdsConnection } from "../ads_connection.ts";
import {
  type DecodedResource,
  needsOf,
  readResource,
} from "../read_resource.ts";
import type {
  AdsChange,
  Need,
  ResourceReader,
  UsableResource,
} from "../held_resources.ts";
import type { RouteConfiguration } from "../../../proto/xds/xds_messages.ts";
import type { ResourceKind } from "../../../proto/xds/resource.ts";

/** A client, as conditions look at it. */
export type SeenBy = Pick<
  AdsClient<DecodedResource>,
  "held" | "absent" | "status"
>;

/** The conditions of a client. */
export interface Condition {
  /** For people. */
  readonly text: string;
  /** @returns What is seen instead; `undefined`: it holds. */
  check(client: SeenBy): string | undefined;
}

/** All that is asked for by name is there. */
export function allThere(wants: readonly Want[]): Condition {
  const named = wants.flatMap(({ kind, names }) =>
    names.map((name) => [kind, name] as const)
  );
  return {
    text: "all that is asked for",
    check(client) {
      const gone = named.filter(([kind, name]) => client.absent(kind).has(name))
        .map(([kind, name]) => `no ${kind} ${name}`);
      return gone.length === 0 ? undefined : gone.join(", ");
    },
  };
}

/** Who subscribes, to what, and where. */
export interface SubscriberOptions {
  readonly form: SubscriberProfile;
  readonly mode: DiscoveryMode;
  readonly node: DiscoveryNode;
  readonly upstream: Upstream;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly keepaliveMs: number;
  readonly onChanged?: (
    changes: readonly AdsChange<DecodedResource>[],
  ) => void;
}

/** A server will not have this client, now or later. */
export class SubscriberRefusedError extends Error {
  override readonly name = "SubscriberRefusedError";
  readonly tunnelCode: Code = "TUN701";
}

/** The conditions were not met in time. */
export class SubscriberTimeoutError extends Error {
  override readonly name = "SubscriberTimeoutError";
  readonly tunnelCode: Code = "TUN119";

  /**
   * @param unmet The conditions that are not met yet.
   * @param problem Why the last attempt to open a stream failed.
   */
  constructor(unmet: string, timeoutMs: number, problem: string | undefined) {
    const because = problem === undefined
      ? ""
      : `; the last problem: ${problem}`;
    super(`${unmet} after ${timeoutMs} ms${because}`);
  }
}

/** Answers that waiting does not change. */
const FINAL_CODES: ReadonlySet<StatusCode> = new Set([
  StatusCode.INVALID_ARGUMENT,
  StatusCode.PERMISSION_DENIED,
  StatusCode.UNAUTHENTICATED,
  StatusCode.UNIMPLEMENTED,
]);

/** Whether a stream that ended with `code` would end so again. */
export function isFinal(code: StatusCode | undefined): boolean {
  return code !== undefined && FINAL_CODES.has(code);
}

/** See the module description. */
export class AdscSubscriber {
  readonly client: AdsClient<DecodedResource>;
  readonly #connection: AdsConnection<DecodedResource>;
  readonly #timers: Timers;
  readonly #refused = Promise.withResolvers<never>();
  #settled = Promise.withResolvers<void>();
  #problem: string | undefined;

  constructor(
    { form, mode, node, timers, onChanged, ...rest }: SubscriberOptions,
  ) {
    this.#timers = timers;
    // Handed to the caller that waits, if there is one.
    this.#refused.promise.catch(() => {});
    this.client = new AdsClient({
      mode,
      node,
      timers,
      read: readerFor(form),
      onChanged: (changes) => onChanged?.(changes),
      onSettled: () => this.#wake(),
    });
    for (const { kind, isWildcard, names } of wantsOf(form)) {
      this.client.want(kind, isWildcard, names);
    }
    this.#connection = new AdsConnection({
      ...rest,
      timers,
      client: this.client,
      onProblem: (problem, _retryMs, code) => {
        this.#problem = problem;
        if (isFinal(code)) {
          this.#refused.reject(new SubscriberRefusedError(problem));
        }
      },
    });
  }

  /** Rejects with a {@linkcode SubscriberRefusedError} when it is refused. */
  get whenRefused(): Promise<never> {
    return this.#refused.promise;
  }

  start(): void {
    this.#connection.start();
  }

  async stop(): Promise<void> {
    await this.#connection.stop();
  }

  /**
   * Waits until all that was asked for has been received, and all conditions hold.
   *
   * @throws {SubscriberRefusedError | SubscriberTimeoutError} One line.
   */
  async until(
    conditions: readonly Condition[],
    timeoutMs: number,
  ): Promise<void> {
    let isLate = false;
    const timer = this.#timers.after(timeoutMs, () => {
      isLate = true;
      this.#wake();
    });
    try {
      for (;;) {
        const unmet = this.#unmet(conditions);
        if (unmet === undefined) return;
        if (isLate) {
          throw new SubscriberTimeoutError(unmet, timeoutMs, this.#problem);
        }
        await Promise.race([this.#settled.promise, this.#refused.promise]);
      }
    } finally {
      timer.cancel();
    }
  }

  #wake(): void {
    this.#settled.resolve();
    this.#settled = Promise.withResolvers();
  }

  #unmet(conditions: readonly Condition[]): string | undefined {
    if (!this.client.isSynced) return "not all was heard of";
    for (const { text, check } of conditions) {
      const seen = check(this.client);
      if (seen !== undefined) return `wanted ${text}, saw ${seen}`;
    }
    return undefined;
  }
}

/** All of a kind, or some by their names. */
export interface Want {
  readonly kind: ResourceKind;
  readonly isWildcard: boolean;
  readonly names: readonly string[];
}

export type SubscriberProfile =
  /** All services. */
  | { readonly kind: "proxy" }
  /** All clusters and listeners, and what they need. */
  | { readonly kind: "envoy" }
  /** Listeners by name, their routes, the clusters of those, and so on. */
  | { readonly kind: "grpc"; readonly names: readonly string[] }
  /** Just these. */
  | { readonly kind: "raw"; readonly wants: readonly Want[] };

/** The first requests. */
export function wantsOf(form: SubscriberProfile): readonly Want[] {
  switch (form.kind) {
    case "proxy":
      return [{ kind: "service", isWildcard: true, names: [] }];
    case "envoy":
      return [
        { kind: "cluster", isWildcard: true, names: [] },
        { kind: "listener", isWildcard: true, names: [] },
      ];
    case "grpc":
      return [{ kind: "listener", isWildcard: false, names: form.names }];
    case "raw":
      return form.wants;
  }
}

/** Tells a server the kind of its client. */
export function userAgentOf({ kind }: SubscriberProfile): string {
  switch (kind) {
    case "proxy":
      return "tunnel";
    case "grpc":
      return "gRPC tunnel adsc";
    case "envoy":
    case "raw":
      return "envoy";
  }
}

/** Accepts every resource that can be read. */
export function readerFor(
  form: SubscriberProfile,
): ResourceReader<DecodedResource> {
  return (kind, resource): UsableResource<DecodedResource> => {
    const content = readResource(kind, resource);
    return { content, needs: form.kind === "raw" ? [] : needed(form, content) };
  };
}

function needed(
  { kind }: SubscriberProfile,
  resource: DecodedResource,
): readonly Need[] {
  if (resource.kind !== "route" || kind !== "grpc") return needsOf(resource);
  return clustersOf(resource.message)
    .map((name) => ({ kind: "cluster", name }));
}

function clustersOf({ virtualHosts = [] }: RouteConfiguration): string[] {
  const names = virtualHosts.flatMap(({ routes = [] }) =>
    routes.flatMap(({ route }) => [
      ...route?.cluster === undefined ? [] : [route.cluster],
      ...(route?.weightedClusters?.clusters ?? [])
        .flatMap(({ name }) => name ?? []),
    ])
  );
  return [...new Set(names)];
}
