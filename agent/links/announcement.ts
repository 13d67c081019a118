/**
 * The services that this node announces: which announcement servers have, and
 * what they refuse.
 *
 * @module
 */

import type { Log } from "../../platform/log/log.ts";
import type {
  AnnouncedService,
  ServiceRefusal,
} from "../../proto/link/link_messages.ts";
import type { AgentOptions } from "../options.ts";

const NO_SERVICES: readonly AnnouncedService[] = Object.freeze([]);

export class Announcement {
  /** What servers were sent last. */
  #announced: readonly AnnouncedService[];
  /** The servers' refusals, as they were logged last. */
  #refusals = "";
  readonly #problems = new Map<string, string>();

  constructor(
    private readonly options: Pick<AgentOptions, "services" | "liveServices">,
    private readonly log: Log,
  ) {
    this.#announced = this.services;
  }

  /** The present announcement. */
  get services(): readonly AnnouncedService[] {
    const { services, liveServices } = this.options;
    return liveServices?.() ?? services ?? NO_SERVICES;
  }

  /**
   * Files were read again.
   *
   * @returns The new announcement, if it differs from the earlier one.
   */
  renewed(): readonly AnnouncedService[] | undefined {
    const { services } = this;
    if (services === this.#announced) return undefined;
    this.#announced = services;
    this.#refusals = "";
    this.#problems.clear();
    return services;
  }

  /** A server does not take some of it; each of its links receives the same. */
  refused(refused: readonly ServiceRefusal[]): void {
    const text = JSON.stringify(refused);
    if (text === this.#refusals) return;
    this.#refusals = text;
    this.#problems.clear();
    for (const { service, reason } of refused) {
      this.#problems.set(service, reason);
      this.log.warn(`the server does not take ${service}: ${reason}`, {
        code: "TUN601",
      });
    }
  }

  /** Why a server refuses that service, in the last server's words. */
  problemOf(service: string): string | undefined {
    return this.#problems.get(service);
  }

  /** A link cannot say it. */
  unheard(serverId: string): void {
    this.log.warn(
      "the services of --announce are not announced: the link speaks " +
        "Konnectivity's protocol, which has no word for them",
      { code: "TUN210", server: serverId },
    );
  }
}
