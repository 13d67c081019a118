/**
 * What the ends of a link send on `/tunnel.v1.Link/Control` (`link.proto`), as
 * closed unions.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";
import type { MessageDecoder } from "../grpc/message_codec.ts";
import {
  type AgentHello,
  type AnnouncedService,
  FromAgent,
  FromServer,
  type PeerServer,
  type ServerHello,
  type ServiceRefusal,
} from "./link_messages.ts";
import { clipped } from "../peer/quoted.ts";

/** A message of a server. */
export type ServerEvent =
  | { readonly type: "hello"; readonly hello: ServerHello }
  /** Agents are to look for another server within that time; absent: at once. */
  | { readonly type: "drain"; readonly spreadMs?: number }
  | {
    readonly type: "reconnect";
    readonly reason: string;
    readonly delayMs: number;
  }
  /** The known addresses of servers, and the number of servers. */
  | {
    readonly type: "peer-addresses";
    readonly servers: readonly PeerServer[];
    readonly serverCount: number;
  }
  | { readonly type: "ca-bundle"; readonly pem: Uint8Array }
  | { readonly type: "announced-services"; readonly names: readonly string[] }
  /** The agent's hello was accepted: the link stands. */
  | { readonly type: "admission" }
  /** `code` is a peer's text; empty: it said none. */
  | {
    readonly type: "refusal";
    readonly reason: string;
    readonly code: string;
  }
  /**
   * The services that the agent announced last; sent only when there are any.
   */
  | {
    readonly type: "service-refusals";
    readonly refused: readonly ServiceRefusal[];
  }
  /** Another process uses this node's identity with the same key. */
  | { readonly type: "duplicate-identity"; readonly message: string }
  /** An event of a newer server; ignored. */
  | { readonly type: "unknown" };

/** What an agent sends. */
export type AgentEvent =
  | { readonly type: "hello"; readonly hello: AgentHello }
  | { readonly type: "drain" }
  /** All that the node serves for others from now on. */
  | {
    readonly type: "services";
    readonly services: readonly AnnouncedService[];
  }
  /** Ids of the authorities that it trusts now; see `enrolment.ts`. */
  | { readonly type: "trust"; readonly authorities: readonly string[] }
  | { readonly type: "unknown" };

/** Thrown for bytes that are no control message; the peer's fault. */
export class ControlError extends Error {
  override readonly name = "ControlError";
  readonly tunnelCode: Code = "TUN417";
}

/** Encodes a server's event. `unknown` cannot be sent. */
export function encodeServerEvent(
  event: Exclude<ServerEvent, { type: "unknown" }>,
): Uint8Array {
  return FromServer.encode(fieldsOf(event));
}

/** Encodes an agent's event. `unknown` cannot be sent. */
export function encodeAgentEvent(
  event: Exclude<AgentEvent, { type: "unknown" }>,
): Uint8Array {
  return FromAgent.encode(fieldsOf(event));
}

/** @throws {ControlError} When `bytes` are no such message. */
export function decodeServerEvent(bytes: Uint8Array): ServerEvent {
  const event = eventOf(read(FromServer, bytes)) as ServerEvent;
  switch (event.type) {
    case "drain":
      return event.spreadMs === 0 ? { type: "drain" } : event;
    case "ca-bundle":
      // Not a view of the bytes, which are the reader's.
      return { type: "ca-bundle", pem: Uint8Array.from(event.pem) };
    default:
      return event;
  }
}

/** @throws {ControlError} When `bytes` are no such message. */
export function decodeAgentEvent(bytes: Uint8Array): AgentEvent {
  const event = eventOf(read(FromAgent, bytes)) as AgentEvent;
  return event.type === "drain" ? { type: "drain" } : event;
}

/** What `fieldsOf` makes of an event, and back: the one member that is there. */
function eventOf(said: FromServer | FromAgent): { readonly type: string } {
  const [[name, fields] = ["unknown", {}]] = Object.entries(said);
  if (name === "hello") return { type: name, hello: fields } as AgentEvent;
  const type = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return { ...fields, type };
}

/** `peer-addresses` → `peerAddresses`, with the rest of the event as fields. */
function fieldsOf(
  event: Exclude<ServerEvent | AgentEvent, { type: "unknown" }>,
): Record<string, object> {
  if (event.type === "hello") return { hello: event.hello };
  const { type, ...fields } = event;
  const name = type.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  return { [name]: fields };
}

function read<T>(codec: MessageDecoder<T>, bytes: Uint8Array): T {
  try {
    return codec.decode(bytes);
  } catch (cause) {
    throw new ControlError(
      `Cannot read a control message of ${bytes.length} bytes: ${
        (cause as Error).message
      }`,
      { cause },
    );
  }
}

// The rules about announced services that both ends share, besides the
// messages: how many there may be, and their names.

/**
 * Ports of services that one agent may announce. A node serves a handful; ten
 * thousand nodes that all lied could fill no more than memory for 640,000.
 */
export const ANNOUNCED_SERVICES_MAX = 64;

/** Longest text of a field, as DNS has it for names. */
export const ANNOUNCED_TEXT_LENGTH_MAX = 253;

/** Longest name of one that is repeated to people. */
const SHOWN_LENGTH_MAX = 100;

/** For people: `default/web:80`, or `default/dns:53/udp`. */
export function announcedName(
  { namespace, name, port, protocol }: AnnouncedService,
): string {
  const key = `${namespace || "default"}/${name}:${port}`;
  const whole = protocol === "udp" ? `${key}/udp` : key;
  // A peer wrote it, and it appears in log lines.
  const plain = whole.replace(/[^\x21-\x7e]/g, "?");
  return clipped(plain, SHOWN_LENGTH_MAX);
}
