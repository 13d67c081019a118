/**
 * Agents by what a caller calls them, whatever the strategies are: `node1` or an
 * address means the `host` identifier, `uid=…` and `cidr=…` those.
 *
 * @module
 */

import type { AgentLink } from "../proto/link/link.ts";
import { keyedStrategy } from "./strategies/keyed.ts";
import type { Strategy } from "./strategies/strategy.ts";

/** See the module description. */
export class NamedAgents {
  readonly #byHost = keyedStrategy(
    "destHost",
    ({ host, ipv4, ipv6 }) => [...host, ...ipv4, ...ipv6],
  );
  readonly #byUid = keyedStrategy("uid", ({ uid }) => uid);
  /** Who has announced this very prefix; one inside it is another one. */
  readonly #byCidr = keyedStrategy("cidr", ({ cidr }) => cidr);

  add(link: AgentLink): void {
    for (const strategy of this.#all) strategy.add(link);
  }

  remove(link: AgentLink): void {
    for (const strategy of this.#all) strategy.remove(link);
  }

  find(name: string): readonly AgentLink[] {
    // No host has an equals sign in it.
    const [, key, value = ""] = /^(uid|cidr|host)=(.*)$/.exec(name) ?? [];
    if (key === undefined) return this.#byHost.find(name);
    if (key === "uid") return this.#byUid.find(value);
    return key === "cidr" ? this.#byCidr.find(value) : this.#byHost.find(value);
  }

  get #all(): readonly Strategy[] {
    return [this.#byHost, this.#byUid, this.#byCidr];
  }
}
