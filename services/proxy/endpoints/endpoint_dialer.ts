/**
 * The way to a target: straight from this machine, or through the tunnel.
 *
 * @module
 */

import { type Code, tunnelCodeOf } from "../../../proto/codes/codes.ts";
import type { Protocol, Via } from "../../catalog/model/model.ts";
import type { Target } from "../../catalog/snapshot.ts";
import { TunnelDialError } from "../../../client/dial_error.ts";
import type { TunnelDialer } from "../../../client/tunnel_dialer.ts";
import { dialAddress, dialTarget } from "../../../net/dial/dial.ts";
import type { Resolver } from "../../../net/names/resolver.ts";
import { systemResolver } from "../../../net/names/system_resolver.ts";
import type { TraceContext } from "../../../proto/peer/trace_context.ts";
import type { ConnectionId } from "../../../proto/peer/connection_id.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { isIpAddress } from "../../../proto/peer/ip_address.ts";
import { DialError } from "../../../proto/peer/dial_error.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";

/**
 * Least time of a try through the tunnel: two of three servers may have
 * stopped, and each is doubted only after a second; then come the round trips
 * to a server and to an agent before the target is asked.
 */
export const AGENT_TIMEOUT_MS_MIN = 3_500;

/** How one dial is to be made. */
export interface EndpointDial {
  readonly protocol: Protocol;
  readonly timeoutMs: number;
  /** See `DialLimits`; a tunnel's sockets are not ours. */
  readonly userTimeoutMs?: number;
  /** Through the tunnel when it cannot be done directly. */
  readonly agentOnFailure: boolean;
  /**
   * The client's first bytes; empty when it has sent none. They travel through
   * the tunnel with the dial, which saves a round trip. Called only when they
   * will be sent; that may be so even if the dial then fails.
   */
  readonly takeEarly?: (() => Promise<Uint8Array>) | undefined;
  /** The connection's, which a tunnel's programs know it by. */
  readonly id?: ConnectionId | undefined;
  readonly trace?: TraceContext | undefined;
  /** Gives the dial up. */
  readonly signal?: AbortSignal | undefined;
}

/** A target that could not be reached. The message is for people. */
export class EndpointDialError extends Error {
  override readonly name = "EndpointDialError";

  get tunnelCode(): Code {
    return tunnelCodeOf(this.cause) ?? "TUN521";
  }

  constructor(
    /**
     * `target`: it, or the way to it, is to blame; `here`: this machine is
     * short of something; `cancelled`: the caller gave up.
     */
    readonly fault: "target" | "here" | "cancelled",
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }

  /** No answer came in time; a refusal is an answer. */
  get isTimeout(): boolean {
    const { cause } = this;
    if (cause instanceof EndpointDialError) return cause.isTimeout;
    return (cause instanceof DialError || cause instanceof TunnelDialError) &&
      cause.reason === "timeout";
  }
}

/** Dials targets. */
export interface EndpointDialer {
  /**
   * @returns A connected conduit without a handler. When the connection is
   *   there at once, the conduit itself and no promise.
   * @throws {EndpointDialError} Never at once.
   */
  dial(target: Target, dial: EndpointDial): Conduit | Promise<Conduit>;
}

/** How a machine is connected. */
export interface MachineDialerOptions {
  /** The dialer into the tunnel; absent: there is none. */
  readonly tunnel?: TunnelDialer | undefined;
  /** `false`: what clients say first waits until an endpoint is connected. */
  readonly earlyData?: boolean | undefined;
  /** Resolves endpoints that are names; the machine's resolver unless given. */
  readonly resolver?: Resolver;
}

export class MachineDialer implements EndpointDialer {
  constructor(private readonly options: MachineDialerOptions) {}

  dial(target: Target, dial: EndpointDial): Conduit | Promise<Conduit> {
    const { via } = target.endpoint;
    if (via.kind === "agent") return this.#throughAgent(target, via, dial);
    const { tunnel, resolver = systemResolver } = this.options;
    return dial.agentOnFailure && tunnel !== undefined
      ? this.#directOrRound(target, dial, resolver)
      : direct(target, dial, resolver);
  }

  async #directOrRound(
    target: Target,
    dial: EndpointDial,
    resolver: Resolver,
  ): Promise<Conduit> {
    try {
      return await direct(target, dial, resolver);
    } catch (error) {
      if (!(error instanceof EndpointDialError) || error.fault !== "target") {
        throw error;
      }
      return await this.#throughAgent(target, ANY_AGENT, dial).catch(
        (other) => {
          if (!(other instanceof EndpointDialError)) throw other;
          const both = `${error.message}; through the tunnel: ${other.message}`;
          throw new EndpointDialError(other.fault, both, other);
        },
      );
    }
  }

  async #throughAgent(
    target: Target,
    { agent }: Extract<Via, { kind: "agent" }>,
    { protocol, timeoutMs, takeEarly, id, trace, signal }: EndpointDial,
  ): Promise<Conduit> {
    const address = hostPort(target.address, target.port);
    const { tunnel, earlyData = true } = this.options;
    if (tunnel === undefined) {
      throw new EndpointDialError(
        "target",
        `Cannot reach ${address}: it is behind an agent, and no tunnel server ` +
          "is known; give --server",
      );
    }
    const early = earlyData ? await takeEarly?.() ?? NOTHING : NOTHING;
    try {
      return await tunnel.dial({
        target: { protocol, address },
        timeoutMs: Math.max(timeoutMs, AGENT_TIMEOUT_MS_MIN),
        node: agent && nodeText(agent),
        earlyData: early.length === 0 ? undefined : early,
        ...{ id, trace, signal },
      });
    } catch (error) {
      if (!(error instanceof TunnelDialError)) throw error;
      const fault = error.reason === "context" ? "cancelled" : "target";
      throw new EndpointDialError(fault, error.message, error);
    }
  }
}

const NOTHING = new Uint8Array();

const ANY_AGENT = { kind: "agent" } as const;

/** How an agent is named to a server's frontend; a bare value is a host. */
function nodeText(
  { key, value }: { readonly key: string; readonly value: string },
): string {
  return key === "host" ? value : `${key}=${value}`;
}

function direct(
  target: Target,
  dial: EndpointDial,
  resolver: Resolver,
): Conduit | Promise<Conduit> {
  const conduit = dialDirectly(target, dial, resolver);
  return conduit instanceof Promise ? conduit.catch(fail) : conduit;
}

function dialDirectly(
  { address, port }: Target,
  { protocol, timeoutMs, userTimeoutMs = 0, signal }: EndpointDial,
  resolver: Resolver,
): Conduit | Promise<Conduit> {
  const limits = { timeoutMs, userTimeoutMs, signal };
  if (protocol === "tcp" && isIpAddress(address)) {
    return dialAddress({ hostname: address, port }, limits);
  }
  return dialTarget({ protocol, address: hostPort(address, port) }, {
    ...limits,
    resolver,
    // Sessions end by their owner's rules, so the conduit has no timeout.
    udpIsSession: true,
    udpIdleTimeoutMs: Infinity,
  });
}

function fail(error: unknown): never {
  if (!(error instanceof DialError)) throw error;
  throw new EndpointDialError(faultOf(error), error.message, error);
}

/** Go's words for having no descriptor or no port left; see `dial_errors.ts`. */
const SHORT_HERE =
  /: socket: too many open files|cannot assign requested addr|address already in use/i;

function faultOf({ reason, message }: DialError): EndpointDialError["fault"] {
  if (reason === "cancelled") return "cancelled";
  return SHORT_HERE.test(message) ? "here" : "target";
}
