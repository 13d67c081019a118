/**
 * A client of discovery that sends what a test has it send, to the state of one
 * stream, and records what it receives.
 *
 * Responses read `cluster a=1 b=2` in SotW, and `cluster a=1 -b` in Delta, where
 * `b` is gone; names are sorted.
 *
 * @module
 */

import type {
  DiscoveryMode,
  ResponseBody,
} from "../../../proto/xds/discovery.ts";
import {
  type Resource,
  type ResourceKind,
  TYPE_URLS,
} from "../../../proto/xds/resource.ts";
import {
  type OutgoingResponse,
  XdsStreamState,
  type XdsStreamStateOptions,
} from "../../../services/discovery/subscriptions/xds_stream_state.ts";
import type { KindStatus } from "../../../services/discovery/subscriptions/stream_status.ts";
import type { View } from "../../../services/discovery/view/view.ts";

/**
 * By kind, then by name: the version, which is all that is in it. One such as
 * `1>a,b` leads to the clusters `a` and `b`.
 */
export type Parts = Readonly<
  Partial<Record<ResourceKind, Readonly<Record<string, string>>>>
>;

/** What there is at first, in tests that do not care what that is. */
export const WORLD = {
  cluster: { a: "1", b: "1" },
  endpoints: { a: "1", b: "1" },
  listener: { a: "1" },
  route: { r: "1" },
} as const;

/** A client that has not asked for anything yet, where there is {@linkcode WORLD}. */
export function inWorld(mode: DiscoveryMode): ScriptedSubscriber {
  const client = new ScriptedSubscriber(mode);
  client.see(WORLD);
  return client;
}

/** @param bytes Size of each resource. */
export function viewOf(parts: Parts, bytes = 8): View {
  const mapOf = (kind: ResourceKind) =>
    new Map(
      Object.entries(parts[kind] ?? {}).map((
        [name, version],
      ) => [name, resourceOf(kind, name, version, bytes)]),
    );
  return {
    resources: {
      cluster: mapOf("cluster"),
      endpoints: mapOf("endpoints"),
      listener: mapOf("listener"),
      route: mapOf("route"),
      service: mapOf("service"),
    },
  };
}

export function resourceOf(
  kind: ResourceKind,
  name: string,
  version: string,
  bytes = 8,
): Resource {
  const [, clusters] = version.split(">");
  return {
    ...{ kind, name, version, any: new Uint8Array(bytes) },
    ...clusters === undefined ? {} : { clusters: clusters.split(",") },
  };
}

/** A response as tests write it. */
export function textOf(kind: ResourceKind, body: ResponseBody): string {
  const resources = body.resources.map(({ name, version }) =>
    `${name}=${version}`
  );
  const removed = [...body.removed].sort().map((name) => `-${name}`);
  return [kind, ...resources.sort(), ...removed].join(" ");
}

/** What a request has beside what the client would send by itself. */
export interface RequestParts {
  readonly nonce?: string;
  readonly version?: string;
  readonly error?: string;
  readonly unsubscribe?: readonly string[];
  /** Delta: what it has, by name. */
  readonly initial?: Readonly<Record<string, string>>;
}

/** See the module description. */
export class ScriptedSubscriber {
  readonly state: XdsStreamState;
  /** All responses, in order. */
  readonly received: OutgoingResponse[] = [];
  nowMs = 0;
  readonly #names = new Map<ResourceKind, readonly string[]>();
  readonly #last = new Map<ResourceKind, OutgoingResponse>();

  constructor(
    readonly mode: DiscoveryMode,
    options: Omit<XdsStreamStateOptions, "mode"> = {},
  ) {
    this.state = new XdsStreamState({ mode, ...options });
  }

  /** There is another view to send. */
  see(view: View | Parts): readonly string[] {
    this.state.onView("resources" in view ? view : viewOf(view), this.nowMs);
    return this.#receive();
  }

  /**
   * SotW: asks for `names`, with the last nonce. Delta: asks for `names` beside
   * what it asked for, with no nonce.
   */
  ask(
    kind: ResourceKind,
    names: readonly string[] = [],
    parts: RequestParts = {},
  ): readonly string[] {
    this.#names.set(kind, names);
    const last = this.mode === "sotw" ? this.nonceOf(kind) : "";
    this.#request(kind, names, { nonce: last, ...parts });
    return this.#receive();
  }

  /** Takes the last response of the kind. */
  ack(kind: ResourceKind, parts: RequestParts = {}): readonly string[] {
    const version = this.#last.get(kind)?.body.version ?? "";
    this.#request(
      kind,
      this.mode === "sotw" ? this.#names.get(kind) ?? [] : [],
      {
        nonce: this.nonceOf(kind),
        version,
        ...parts,
      },
    );
    return this.#receive();
  }

  /** Refuses the last response of the kind. */
  nack(
    kind: ResourceKind,
    error: string,
    parts: RequestParts = {},
  ): readonly string[] {
    return this.ack(kind, { version: "", error, ...parts });
  }

  /** Takes all that comes, until nothing does. */
  settle(): readonly string[] {
    const lines: string[] = [];
    for (;;) {
      const open = this.state.status.kinds.filter(({ inFlightSinceMs }) =>
        inFlightSinceMs !== undefined
      );
      if (open.length === 0) return lines;
      for (const { kind } of open) lines.push(...this.ack(kind));
    }
  }

  /** Time passes. */
  pass(ms: number): readonly string[] {
    this.nowMs += ms;
    return this.#receive();
  }

  nonceOf(kind: ResourceKind): string {
    return this.#last.get(kind)?.nonce ?? "";
  }

  versionOf(kind: ResourceKind): string {
    return this.#last.get(kind)?.body.version ?? "";
  }

  /** @throws {TypeError} If it has not asked for that. */
  statusOf(kind: ResourceKind): KindStatus {
    const status = this.state.status.kinds.find((one) => one.kind === kind);
    if (status === undefined) throw new TypeError(`Nobody asked for ${kind}`);
    return status;
  }

  #request(
    kind: ResourceKind,
    names: readonly string[],
    parts: RequestParts,
  ): void {
    const every = {
      node: undefined,
      typeUrl: TYPE_URLS[kind],
      responseNonce: parts.nonce ?? "",
      errorDetail: parts.error === undefined
        ? undefined
        : { code: 3, message: parts.error },
    };
    this.state.onRequest(
      this.mode === "sotw"
        ? {
          ...every,
          mode: "sotw",
          versionInfo: parts.version ?? "",
          resourceNames: names,
        }
        : {
          ...every,
          mode: "delta",
          subscribe: names,
          unsubscribe: parts.unsubscribe ?? [],
          initialVersions: new Map(Object.entries(parts.initial ?? {})),
        },
      this.nowMs,
    );
  }

  #receive(): readonly string[] {
    const lines: string[] = [];
    for (;;) {
      const out = this.state.next(this.nowMs);
      if (out === undefined) return lines;
      this.received.push(out);
      this.#last.set(out.kind, out);
      lines.push(textOf(out.kind, out.body));
    }
  }
}
