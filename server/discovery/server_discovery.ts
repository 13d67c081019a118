/**
 * Discovery as a server has it: on the agent port for authenticated callers, on a
 * port of its own for programs on this machine, and on the admin port for people.
 *
 * @module
 */

import type { CountingTools } from "../../platform/program/tools.ts";
import type { Catalog } from "../../services/catalog/catalog.ts";
import type { DiscoveryAnswers } from "../../services/discovery/status/client_answers.ts";
import type { ConnectionLimiter } from "../../net/admission/connection_limiter.ts";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { ConnectionPeer } from "../links/agent_port.ts";
import type { Admit } from "../../services/discovery/access/admission.ts";
import { Discovery } from "../../services/discovery/serving/discovery.ts";
import { DiscoveryPort } from "../../services/discovery/serving/discovery_port.ts";

import { generateService } from "../../services/discovery/generate/generate_service.ts";
import {
  type AnnouncementRules,
  authorizeAnnouncement,
} from "./membership/announcement.ts";
import {
  type MemberMemory,
  MemberRecords,
} from "./membership/member_memory.ts";
import { SharedOffers } from "./membership/shared_offers.ts";
import type { PeerOffers } from "./membership/peer_offers.ts";
import { MembershipSource } from "./membership/membership_source.ts";

import type { SubscriberStream } from "../../services/discovery/streams/subscriber_stream.ts";
import type { SubscriberLink } from "../../services/discovery/streams/open_streams.ts";
import type { Visibility } from "../../services/catalog/visibility.ts";
import type { DiscoveryServerOptions } from "../../services/discovery/serving/discovery_options.ts";

export { MemberRecords, SharedOffers };

/** What is taken from the server. */
export interface ServerDiscoveryEnvironment extends CountingTools {
  readonly receiveBudget: ReceiveBudget;
  readonly limiter: ConnectionLimiter;
  /** The server's own id. */
  readonly server: string;
  readonly admit: Admit;
  readonly rules: DiscoveryRules;
  /** Whether anonymous agents may link. */
  readonly letsAnonymous: boolean;
  /** Absent: a server starts without remembered agents. */
  readonly memory?: MemberMemory;
  /** What agents of other servers offer; absent: nothing is known of it. */
  readonly peers?: PeerOffers;
}

/** Which services nodes may see, and which they may announce. */
export interface DiscoveryRules
  extends Omit<AnnouncementRules, "letsAnonymous"> {
  visibleTo(node: string): Visibility;
}

/** See the module description. */
export class ServerDiscovery {
  /** What agents announce. */
  readonly membership: MembershipSource;
  readonly #discovery: Discovery;
  readonly #port: DiscoveryPort | undefined;

  /** @throws {ListenError} */
  constructor(
    options: DiscoveryServerOptions,
    environment: ServerDiscoveryEnvironment,
  ) {
    const { log, timers, rules, letsAnonymous, memory, peers } = environment;
    const { settleMs } = options;
    this.membership = new MembershipSource({
      log,
      timers,
      ...(settleMs === undefined ? {} : { settleMs }),
      ...(memory === undefined ? {} : { memory }),
      ...(peers === undefined ? {} : { peers }),
      mayOffer: (node, service) => rules.mayOffer(node, service),
      authorize: (peer, services) =>
        authorizeAnnouncement(peer, services, {
          letsAnonymous,
          grantsOf: (node) => rules.grantsOf(node),
          mayOffer: (node, service) => rules.mayOffer(node, service),
        }),
    });
    this.#discovery = new Discovery(options, {
      ...environment,
      random: Math.random,
      generate: generateService,
      sources: [this.membership],
      visibleTo: (node) => rules.visibleTo(node),
    });
    this.#port = options.listen && new DiscoveryPort(options.listen, {
      ...environment,
      methods: (origin) => this.#discovery.methods(origin),
    });
  }

  /** Where programs on this machine are served; absent: nowhere. */
  get address(): string | undefined {
    return this.#port?.address;
  }

  get catalog(): Catalog {
    return this.#discovery.catalog;
  }

  /** Why subscribers are not answered, if that takes longer than moments. */
  get problem(): string | undefined {
    return this.#discovery.problem;
  }

  /** Of all subscribers. */
  get streams(): ReadonlySet<SubscriberStream> {
    return this.#discovery.streams;
  }

  /** For the admin API. */
  get answers(): DiscoveryAnswers {
    return this.#discovery.answers;
  }

  /** Subscribers on the agent port, to be authorized again with agents. */
  get links(): readonly SubscriberLink[] {
    return this.#discovery.links;
  }

  /** The server listens: reads the catalog, and answers. */
  start(): void {
    this.#discovery.start();
  }

  /** Methods of one connection to the agent port. */
  methods(caller: ConnectionPeer): Readonly<Record<string, MethodHandler>> {
    return this.#discovery.methods({ ...caller, needsNoProof: false });
  }

  /** The policy may have changed. */
  reconsider(): void {
    this.#discovery.reconsider();
  }

  /** Sends clients to other servers, and admits no more. */
  drain(reason: string): void {
    this.#discovery.drain(reason);
    this.#port?.drain(reason);
  }

  /** Settles when the sources have ended. */
  async stop(reason: string): Promise<void> {
    this.drain(reason);
    this.#port?.stop(reason);
    await this.#discovery.stop(reason);
  }
}
