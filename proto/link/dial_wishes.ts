/**
 * What a caller may say of a dial besides its target: in the metadata of a call of
 * `/ProxyService/Proxy`, and among the headers of a CONNECT request. All of it is
 * ours, and ignored by servers that do not know it.
 *
 * @module
 */

import type { Metadata } from "../grpc/metadata.ts";
import { DialError } from "../peer/dial_error.ts";

/** Names the node whose agent is wanted. */
export const NODE_FIELD = "tunnel-node";

/** See `DialWishes.oneAgent`; each of these three has any value. */
const ONE_AGENT_FIELD = "tunnel-one-agent";

/** See `DialWishes.maybeNode`. */
export const NODE_NAME_FIELD = "tunnel-node-name";

/** See `DialWishes.hasOthers`. */
const OTHER_SERVERS_FIELD = "tunnel-other-servers";

/** The code of the refusal that `DialWishes.maybeNode` asks for. */
export const HOST_IS_NODE = "TUN524";

/** See the module description. */
export interface DialWishes {
  /**
   * The `host` identifier of the only node wanted; `uid=` and `cidr=` in front
   * mean those identifiers, `id=` the agent's own name.
   */
  readonly node?: string | undefined;
  /**
   * The dial is for the only agent, and must be refused when there are several:
   * each has its own loopback. Only when no node is named.
   */
  readonly oneAgent?: boolean | undefined;
  /**
   * The target may be a connected node by its name: such a dial is refused with
   * {@linkcode HOST_IS_NODE}, and the caller names the node. Only where no node is
   * named; sent by people's commands only.
   */
  readonly maybeNode?: boolean | undefined;
  /**
   * The caller knows servers that it has not asked: a server whose agent may
   * have stopped keeps the caller's first bytes, and refuses the dial soon, so
   * that another server can be asked.
   */
  readonly hasOthers?: boolean | undefined;
}

/** The fields of `wishes` alone, without others that the object has. */
export function wishesOf(
  { node, oneAgent, maybeNode, hasOthers }: DialWishes,
): DialWishes {
  return { node, oneAgent, maybeNode, hasOthers };
}

/** The fields that say `wishes`, and their values. */
export function wishFields(
  { node, oneAgent, maybeNode, hasOthers }: DialWishes,
): [name: string, value: string][] {
  const fields: [string, string][] = [];
  if (node !== undefined) fields.push([NODE_FIELD, node]);
  else if (oneAgent === true) fields.push([ONE_AGENT_FIELD, "true"]);
  else if (maybeNode === true) fields.push([NODE_NAME_FIELD, "true"]);
  if (hasOthers === true) fields.push([OTHER_SERVERS_FIELD, "true"]);
  return fields;
}

/** @param first The first value of a field, if there is one. */
export function readWishes(
  first: (field: string) => string | undefined,
): DialWishes & { readonly node: string | undefined } {
  return {
    node: first(NODE_FIELD),
    oneAgent: first(ONE_AGENT_FIELD) !== undefined,
    maybeNode: first(NODE_NAME_FIELD) !== undefined,
    hasOthers: first(OTHER_SERVERS_FIELD) !== undefined,
  };
}

/**
 * A server that takes one of two nodes may disagree with one that takes the
 * other.
 */
export const TWO_NODES: string = `Cannot dial: ${NODE_FIELD} is given twice; ` +
  "one connection is made by one node";

/** Why a call names no node, or not one. */
export function nodeProblem(metadata: Metadata): DialError | undefined {
  return metadata.all(NODE_FIELD).length < 2
    ? undefined
    : new DialError("refused", TWO_NODES, { code: "TUN101" });
}
