/**
 * Logs once, and again when it comes back, which services cannot be served to which
 * clients: else people would look for a fault at the other end.
 *
 * @module
 */

import type { Log } from "../../../platform/log/log.ts";
import type { ClientGroup } from "../generate/client_group.ts";
import type { Unserved } from "../generate/service_resources.ts";
import type { Views } from "../generate/views.ts";

/**
 * Limit on lines at once; more are only counted, and `tunnel xds diff` lists
 * all.
 */
export const UNSERVED_LINES_MAX = 20;

/** See the module description. */
export class UnservedLog {
  /** By group: the list at the last look, and its sentences. */
  readonly #known = new Map<
    string,
    { readonly list: readonly Unserved[]; readonly texts: ReadonlySet<string> }
  >();

  constructor(
    private readonly views: Pick<Views, "groups" | "unservedTo">,
    private readonly log: Pick<Log, "warn">,
  ) {}

  /** Over all groups. */
  get count(): number {
    return this.views.groups
      .reduce((sum, one) => sum + this.views.unservedTo(one).length, 0);
  }

  /** Looks at all groups, and logs what is new. */
  look(): void {
    const { groups } = this.views;
    const keys = new Set(groups.map(({ key }) => key));
    for (const key of this.#known.keys()) {
      if (!keys.has(key)) this.#known.delete(key);
    }
    const fresh = new Set<string>();
    for (const group of groups) {
      for (const text of this.#newFor(group)) fresh.add(text);
    }
    const texts = [...fresh];
    for (const text of texts.slice(0, UNSERVED_LINES_MAX)) {
      this.log.warn(text, { code: "TUN708" });
    }
    const more = texts.length - UNSERVED_LINES_MAX;
    if (more <= 0) return;
    this.log.warn(
      `${more} more services are not served to some clients; see ` +
        "`tunnel xds diff NODE`",
      { code: "TUN708" },
    );
  }

  #newFor(group: ClientGroup): readonly string[] {
    const list = this.views.unservedTo(group);
    const known = this.#known.get(group.key);
    if (known?.list === list) return [];
    const texts = new Set(
      list.map(({ service, reason }) =>
        `${service} is not served to ${CLIENTS[group.form]}: ${reason}`
      ),
    );
    this.#known.set(group.key, { list, texts });
    return [...texts].filter((text) => !known?.texts.has(text));
  }
}

const CLIENTS = {
  service: "node proxies",
  grpc: "gRPC clients",
  envoy: "Envoy",
} as const;
