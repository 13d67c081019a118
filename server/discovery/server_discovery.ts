/**
 * A server's discovery: on the agent port for authenticated callers, on a port
 * of its own for programs on this machine, and on the admin port for people.
 *
 * @module
 */

import type { ConnectionLimiter } from "../../net/admission/connection_limiter.ts";
import type { CountingTools } from "../../platform/program/tools.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { Admit } from "../../services/discovery/access/subscriber.ts";
import {
  Discovery,
  type DiscoveryServerOptions,
} from "../../services/discovery/serving/discovery.ts";
import { DiscoveryPort } from "../../services/discovery/serving/discovery_port.ts";
import { generateService } from "../../services/discovery/generate/generate_service.ts";
import { authorizeAnnouncement } from "./membership/announcement.ts";
import {
  type MemberMemory,
  MemberRecords,
} from "./membership/member_memory.ts";
import { type PeerOffers, SharedOffers } from "./membership/shared_offers.ts";
import type { Policy } from "../policy/policy.ts";
import { MembershipSource } from "./membership/membership_source.ts";

export { MemberRecords, SharedOffers };

/** Its tools from the server. */
export interface ServerDiscoveryEnvironment extends CountingTools {
  readonly receiveBudget: ReceiveBudget;
  readonly limiter: ConnectionLimiter;
  /** The server's own id. */
  readonly server: string;
  readonly admit: Admit;
  /** Which services nodes may see, and which they may announce. */
  policy(): Policy;
  /** Whether anonymous agents may link. */
  readonly letsAnonymous: boolean;
  /** Absent: a server starts without remembered agents. */
  readonly memory?: MemberMemory;
  /** Offers of other servers' agents; absent: they are not known. */
  readonly peers?: PeerOffers;
}

/** See the module description. */
export class ServerDiscovery extends Discovery {
  /** What agents announce. */
  readonly membership: MembershipSource;
  readonly #port: DiscoveryPort | undefined;

  /** @throws {ListenError} */
  constructor(
    options: DiscoveryServerOptions,
    environment: ServerDiscoveryEnvironment,
  ) {
    const { policy, letsAnonymous } = environment;
    const membership = new MembershipSource({
      ...environment,
      now: Date.now,
      settleMs: options.settleMs,
      mayOffer: (node, service) => policy().mayOffer(node, service),
      authorize: (peer, services) =>
        authorizeAnnouncement(peer, services, {
          letsAnonymous,
          policy: policy(),
        }),
    });
    super(options, {
      ...environment,
      random: Math.random,
      generate: generateService,
      sources: [membership],
      visibleTo: (node) => policy().visibleTo(node),
    });
    this.membership = membership;
    this.#port = options.listen && new DiscoveryPort(options.listen, {
      ...environment,
      methods: (origin) => this.methods(origin),
    });
  }

  /** The port for programs on this machine; absent: there is none. */
  get address(): string | undefined {
    return this.#port?.address;
  }

  /** Sends clients to other servers, and admits no more. */
  override drain(reason: string): void {
    super.drain(reason);
    this.#port?.drain(reason);
  }

  /** Settles when the sources have ended. */
  override async stop(reason: string): Promise<void> {
    this.drain(reason);
    this.#port?.stop(reason);
    await super.stop(reason);
  }
}
