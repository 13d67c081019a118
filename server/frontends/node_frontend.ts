/**
 * Nodes that ask for connections to other nodes, on the agent port: the same
 * method as the gRPC frontend has, for callers with a node's certificate.
 *
 * The authorizers of agents decide who a caller is; the policy decides what it
 * may reach, with the node as caller. A virtual address is replaced by its
 * agent and real address before any decision, so nodes whose addresses overlap
 * are not confused.
 *
 * It knows neither what a node may reach nor which agent carries the
 * connection.
 *
 * @module
 */

import { tunnelCodeOf } from "../../proto/codes/codes.ts";
import {
  INTERNAL_ERROR,
  unawaited,
} from "../../platform/errors/internal_errors.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { splitAddress } from "../../policy/target_address.ts";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import {
  type DialAnswer,
  type DialContext,
  failedDial,
} from "../../proto/link/dial_handler.ts";
import { nodeProblem, readWishes } from "../../proto/link/dial_wishes.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import {
  internalRefusal,
  type LinkAuthorization,
  type LinkCandidate,
  type LinkPeer,
  type LinkRefusal,
  type PendingDial,
} from "../../proto/link/link.ts";
import { proxyService } from "../../proto/link/proxy_service.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { LimitedTools } from "../routing/caller_loads.ts";
import type { CallerDial } from "../routing/dialer.ts";
import {
  isVirtualAddress,
  type VirtualTarget,
} from "../../services/discovery/generate/virtual_addresses.ts";
import { provenNames } from "../../policy/subject.ts";
import type { ConnectionPeer } from "../links/agent_port.ts";
import { PROXY_PATH } from "../../proto/link/capabilities.ts";

/**
 * Connections and dials of one node at once, over all that it calls on. A proxy
 * of a busy node has hundreds; at this many one node could hold a quarter of a
 * GiB of windows.
 */
export const NODE_CONDUITS_MAX = 4_096;

/** What the node frontend needs from outside. */
export interface NodeFrontendOptions extends LimitedTools {
  /** Whether a caller may be the node that its certificate names. */
  admit(candidate: LinkCandidate): LinkAuthorization;
  /** Finds the endpoint behind a virtual address. */
  resolve(host: string): VirtualTarget | undefined;
  /** A caller was refused before its target was looked at. */
  refused(remoteAddress: string, reason: string): void;
  /** +1 and −1 for every connection. */
  counted(change: 1 | -1): void;
}

/** A node's calls, as far as they are like an agent's link: known, and ended. */
export interface NodeCalls {
  readonly peer: LinkPeer;
  close(reason: string): void;
}

/** Serves dials of nodes, on all connections to the agent port. */
export class NodeFrontend {
  /** Those with a connection. */
  readonly #callers = new Set<NodeCaller>();
  /** Counts up whenever an admitted caller may have lost its right. */
  #trustVersion = 0;

  constructor(private readonly options: NodeFrontendOptions) {}

  /** Callers that have a connection, to be authorized again with agents. */
  get links(): readonly NodeCalls[] {
    return [...this.#callers];
  }

  /**
   * An admitted caller may have lost its right: callers are authorized again.
   */
  reconsider(): void {
    this.#trustVersion++;
  }

  /** The method, as one connection to the agent port may call it. */
  methods(caller: ConnectionPeer): Readonly<Record<string, MethodHandler>> {
    const node = provenNames(caller.identity)?.[0];
    if (node === undefined) return { [PROXY_PATH]: refuseNobody };
    const calls = new NodeCaller(caller, node);
    const serve = proxyService({
      ...this.options,
      onDial: (target, answer, context) =>
        this.#dial(calls, target, answer, context),
      join: (conduit, target) => this.#join(calls, conduit, target),
    });
    return { [PROXY_PATH]: serve };
  }

  #dial(
    calls: NodeCaller,
    target: DialTarget,
    answer: DialAnswer,
    context: DialContext,
  ): PendingDial {
    const decision = this.#admit(calls);
    if (!(decision instanceof Promise)) {
      return this.#dialAs(decision, calls, target, answer, context);
    }
    let pending: PendingDial | undefined;
    let isCancelled = false;
    const dialing = decision.catch(internalRefusal).then((refusal) => {
      if (isCancelled) return;
      pending = this.#dialAs(refusal, calls, target, answer, context);
    });
    unawaited(
      "dial",
      dialing,
      () =>
        answer.failed(
          new DialError("endpoint", INTERNAL_ERROR, { code: "TUN907" }),
        ),
    );
    return {
      cancel() {
        isCancelled = true;
        pending?.cancel();
      },
    };
  }

  /** This reads a record and checks a signature: not for every dial. */
  #admit(calls: NodeCaller): LinkAuthorization {
    const version = this.#trustVersion;
    if (calls.admittedAt === version) return undefined;
    const admitted = (refusal: LinkRefusal | undefined) => {
      if (refusal === undefined) calls.admittedAt = version;
      return refusal;
    };
    const decision = this.options.admit({ peer: calls.peer, token: "" });
    return decision instanceof Promise
      ? decision.then(admitted)
      : admitted(decision);
  }

  #dialAs(
    refusal: LinkRefusal | undefined,
    calls: NodeCaller,
    target: DialTarget,
    answer: DialAnswer,
    { metadata, id, trace, takeEarlyData }: DialContext,
  ): PendingDial {
    if (refusal !== undefined) {
      const error = new DialError(
        "refused",
        refusal.message,
        { code: tunnelCodeOf(refusal) ?? "TUN320" },
      );
      return this.#fail(calls, error, answer);
    }
    // Here, for many may have waited for one decision.
    const load = this.options.loads.of({ node: calls.node });
    if (load >= NODE_CONDUITS_MAX) {
      const error = new DialError(
        "refused",
        `Cannot dial ${target.address}: ${calls.node} has ${load} ` +
          "connections, and no node may have more",
        { code: "TUN409" },
      );
      return this.#fail(calls, error, answer);
    }
    const { node: wanted, hasOthers } = readWishes((field) =>
      metadata.text(field)
    );
    const meant = nodeProblem(metadata) ??
      this.#meant({ target, node: wanted });
    if (meant instanceof DialError) return this.#fail(calls, meant, answer);
    const { peer: { remoteAddress, identity }, node } = calls;
    const caller = { remoteAddress, identity, node, localAddress: "" };
    const request = { ...meant, hasOthers, id, trace, caller, takeEarlyData };
    return this.options.dial(request, answer);
  }

  /**
   * The meaning of a dial: a virtual address is another address behind an
   * agent.
   */
  #meant(
    asked: Pick<CallerDial, "target" | "node">,
  ): Pick<CallerDial, "target" | "node"> | DialError {
    const { protocol, address } = asked.target;
    if (protocol === "unix") return asked;
    let host: string;
    let port: number;
    try {
      ({ host, port } = splitAddress(asked.target));
    } catch (error) {
      if (error instanceof DialError) return error;
      throw error;
    }
    if (!isVirtualAddress(host)) return asked;
    const found = this.options.resolve(host);
    if (found === undefined) {
      return new DialError(
        "no-agent",
        `Cannot dial ${address}: no endpoint that is there has this virtual ` +
          "address",
        { code: "TUN521" },
      );
    }
    const { agent } = found;
    return {
      target: { protocol, address: hostPort(found.address, port) },
      node: agent && `${agent.key}=${agent.value}`,
    };
  }

  #join(calls: NodeCaller, conduit: Conduit, target: Conduit): void {
    this.options.counted(1);
    calls.conduits.add(conduit);
    this.#callers.add(calls);
    // Dials take a while: its node may have been revoked meanwhile.
    if (calls.admittedAt !== this.#trustVersion) {
      const end = () => calls.close(INTERNAL_ERROR);
      unawaited("identity", this.#authorizeAgain(calls), end);
    }
    this.options.join(conduit, target, () => {
      calls.conduits.delete(conduit);
      if (calls.conduits.size === 0) this.#callers.delete(calls);
      this.options.counted(-1);
    });
  }

  async #authorizeAgain(calls: NodeCaller): Promise<void> {
    const refusal = await Promise.resolve(this.#admit(calls))
      .catch(internalRefusal);
    if (refusal !== undefined) calls.close(refusal.message);
  }

  #fail(
    { peer: { remoteAddress } }: NodeCaller,
    error: DialError,
    answer: DialAnswer,
  ): PendingDial {
    this.options.refused(remoteAddress, error.message);
    return failedDial(answer, error);
  }
}

/** The open calls of one node's connection to the agent port. */
class NodeCaller implements NodeCalls {
  readonly peer: LinkPeer;
  readonly conduits = new Set<Conduit>();
  /** The version of the trust that its right to call depends on. */
  admittedAt = -1;

  constructor(
    { identity, remoteAddress }: ConnectionPeer,
    readonly node: string,
  ) {
    this.peer = {
      agentId: node,
      identifiers: NO_IDENTIFIERS,
      identity,
      remoteAddress,
      carrier: "packets",
      software: "",
    };
  }

  close(reason: string): void {
    for (const conduit of [...this.conduits]) conduit.reset(reason);
  }
}

/**
 * Agents may be admitted without proof; connections to other nodes need one.
 */
const refuseNobody: MethodHandler = () => {
  throw new GrpcError(
    StatusCode.UNAUTHENTICATED,
    "Cannot connect this caller: it showed no certificate; use that " +
      "of a node that joined",
  );
};
