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

/** The other end of a way: a link, or a server. */
export interface FarEnd {
  /** Dials and conduits that are led there. */
  readonly load: number;
  /** Since when it was asked for a sign of life and has not answered. */
  readonly askedMs: number | undefined;
  /** It has answered so recently that it is alive and reachable. */
  readonly isProven: boolean;
  /** Asks it for a sign of life. */
  checkLiveness(): void;
  /**
   * Called after a dial: runs `then` when early bytes may follow the dial. That
   * may be at once, and it never happens when they must follow the answer.
   */
  whenAlive(then: () => void): void;
}

/** See the module description; made for one dial. */
export interface DialWay {
  /** Two ways with the same one are one. */
  readonly leadsTo: FarEnd;
  /** The agent that connects, where this server knows it. */
  readonly agentId: string | undefined;
  /** The server that is asked, for records; absent: the agent is linked here. */
  readonly forwardedTo?: string;
  /** The way as part of a sentence, such as `agent edge-7 (10.0.0.7:4711)`. */
  readonly name: string;
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

/** Over the link of an agent. */
export class LinkWay implements DialWay {
  constructor(
    readonly leadsTo: AgentLink,
    private readonly target: DialTarget,
  ) {}

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
