/**
 * Says once, and again when it comes back, which services cannot be served to
 * which clients: else somebody would look for a fault at the other end.
 *
 * @module
 */

import type { Log } from "../../../platform/log/log.ts";
import type { Audience } from "../generate/audience.ts";
import type { Unserved } from "../generate/service_resources.ts";

/** Lines at once; what is more is only counted, `tunnel xds diff` has it all. */
export const UNSERVED_LINES_MAX = 20;

/** The part of `Views` that knows. */
export interface UnservedSource {
  readonly audiences: readonly Audience[];
  unservedTo(audience: Audience): readonly Unserved[];
}

/** See the module description. */
export class UnservedLog {
  readonly #source: UnservedSource;
  readonly #log: Pick<Log, "warn">;
  /** By audience: what it was when it was looked at last, and its sentences. */
  readonly #known = new Map<
    string,
    { readonly list: readonly Unserved[]; readonly texts: ReadonlySet<string> }
  >();

  constructor(source: UnservedSource, log: Pick<Log, "warn">) {
    this.#source = source;
    this.#log = log;
  }

  /** Over all audiences. */
  get count(): number {
    return this.#source.audiences
      .reduce((sum, one) => sum + this.#source.unservedTo(one).length, 0);
  }

  /** Looks at all audiences, and says what is new. */
  look(): void {
    const { audiences } = this.#source;
    const keys = new Set(audiences.map(({ key }) => key));
    for (const key of this.#known.keys()) {
      if (!keys.has(key)) this.#known.delete(key);
    }
    const fresh = new Set<string>();
    for (const audience of audiences) {
      for (const text of this.#newFor(audience)) fresh.add(text);
    }
    const texts = [...fresh];
    for (const text of texts.slice(0, UNSERVED_LINES_MAX)) this.#log.warn(text);
    const more = texts.length - UNSERVED_LINES_MAX;
    if (more <= 0) return;
    this.#log.warn(
      `${more} more services are not served to some clients; see ` +
        "`tunnel xds diff NODE`",
    );
  }

  #newFor(audience: Audience): readonly string[] {
    const list = this.#source.unservedTo(audience);
    const known = this.#known.get(audience.key);
    if (known?.list === list) return [];
    const texts = new Set(
      list.map(({ service, reason }) =>
        `${service} is not served to ${CLIENTS[audience.form]}: ${reason}`
      ),
    );
    this.#known.set(audience.key, { list, texts });
    return [...texts].filter((text) => !known?.texts.has(text));
  }
}

const CLIENTS = {
  proxy: "node proxies",
  grpc: "gRPC clients",
  envoy: "Envoy",
} as const;
