/**
 * A way that a dial may take: over an agent's link, or to another server that
 * has one. `OngoingDial` sees no difference between the two.
 *
 * @module
 */

import {
  isTracing,
  type Span,
  SPAN_ATTRIBUTES,
  startChild,
} from "../../platform/tracing/tracing.ts";
import type { TraceContext } from "../../proto/peer/trace_context.ts";
import { isRefusalByRule } from "../../policy/refusal.ts";
import type {
  AgentLink,
  DialEvents,
  LinkDialOptions,
  PendingDial,
} from "../../proto/link/link.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";

/** See the module description; made for one dial. */
export interface DialWay {
  /** The link, or the server: two ways with the same one are one. */
  readonly leadsTo: object;
  /** The agent that connects, where this server knows it. */
  readonly agentId: string | undefined;
  /** The server that is asked, for records; absent: the agent is linked here. */
  readonly forwardedTo?: string;
  /** The way as part of a sentence, such as `agent edge-7 (10.0.0.7:4711)`. */
  readonly name: string;
  /** Dials and conduits that take it, where ways are compared by it. */
  readonly load?: number;
  /** Its other end owes a sign of life: others are asked first. */
  readonly isStill?: boolean;
  /**
   * Since when its other end was asked for a sign of life and has not answered.
   */
  readonly askedMs: number | undefined;
  /** Its other end has answered so recently that it is alive and reachable. */
  readonly isProven: boolean;
  /** Asks its other end for a sign of life, unless one is waited for. */
  checkLiveness(): void;
  /**
   * Called after `dial`: runs `then` when early bytes may follow the dial. That
   * may be at once, and it never happens when they must follow the answer.
   */
  whenAlive(then: () => void): void;
  /**
   * Asks for the connection. Deadlines are the caller's business.
   *
   * An error with a `loss` is no answer of the target's: another way may be
   * asked, and what had been sent early may be sent again if it is
   * `unprocessed`.
   */
  dial(events: DialEvents, options: LinkDialOptions): PendingDial;
  /** The text of its failure for a caller, who does not know ways. */
  named(error: DialError): DialError;
}

/** The span of asking over `way`, below `trace`, where that is wanted. */
export function waySpan(
  { agentId, forwardedTo }: DialWay,
  trace: TraceContext | undefined,
): Span | undefined {
  if (!isTracing) return undefined;
  const name = forwardedTo === undefined ? "ask agent" : "ask server";
  return startChild(name, trace, {
    kind: "client",
    attributes: {
      [SPAN_ATTRIBUTES.node]: agentId,
      [SPAN_ATTRIBUTES.server]: forwardedTo,
    },
  });
}

/** A link or a server, as far as a way to it asks whether it lives. */
interface FarEnd {
  readonly askedMs: number | undefined;
  readonly isProven: boolean;
  checkLiveness(): void;
  whenAlive(then: () => void): void;
}

/** What ways to links and to servers have in common. */
export abstract class WayTo<End extends FarEnd> {
  constructor(readonly leadsTo: End) {}

  get askedMs(): number | undefined {
    return this.leadsTo.askedMs;
  }

  get isProven(): boolean {
    return this.leadsTo.isProven;
  }

  checkLiveness(): void {
    if (this.leadsTo.askedMs === undefined) this.leadsTo.checkLiveness();
  }

  whenAlive(then: () => void): void {
    this.leadsTo.whenAlive(then);
  }
}

/** Over the link of an agent. */
export class LinkWay extends WayTo<AgentLink> implements DialWay {
  constructor(link: AgentLink, private readonly target: DialTarget) {
    super(link);
  }

  get agentId(): string {
    return this.leadsTo.peer.agentId;
  }

  get name(): string {
    const { agentId, remoteAddress } = this.leadsTo.peer;
    return `agent ${agentId} (${remoteAddress})`;
  }

  dial(events: DialEvents, options: LinkDialOptions): PendingDial {
    return this.leadsTo.dial(this.target, events, options);
  }

  /** A link knows what went wrong; the caller must also learn on which node. */
  named(error: DialError): DialError {
    // It names its rule, the same over either carrier.
    if (isRefusalByRule(error.message)) return error;
    if (error.reason === "endpoint" || error.reason === "timeout") {
      return /^[\x21-\x7e]{1,63}$/.test(this.agentId)
        ? new DialError(
          error.reason,
          `${error.message} (agent ${this.agentId})`,
          { loss: error.loss, code: error.tunnelCode },
        )
        : error;
    }
    if (error.reason !== "link-lost") return error;
    return new DialError(
      "link-lost",
      `Cannot dial ${this.target.address}: the link to ${this.name} was ` +
        `lost: ${error.message}`,
    );
  }
}
