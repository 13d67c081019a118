/**
 * The messages of `/tunnel.v1.Link/Control` (`link.proto`), as closed unions.
 *
 * The schema is built here in code so that nothing is read at run time; a test
 * keeps it equal to `link.proto`.
 *
 * @module
 */

import protobuf from "npm:protobufjs@8.8.1/light.js";

/** Sent once by the server, first of all. */
export interface ServerHello {
  readonly version: number;
  /** Such as `tunnel/0.1.0`. */
  readonly software: string;
  readonly serverId: string;
  /** How many servers there are, for the agent to find them all. */
  readonly serverCount: number;
  readonly capabilities: readonly string[];
  /**
   * See `instance_id.ts`: a successor with the same server id is told from who is
   * still going; empty: the server does not say.
   */
  readonly instanceId?: string;
}

/** Sent once by the agent, in answer. */
export interface AgentHello {
  readonly version: number;
  readonly software: string;
  readonly agentId: string;
  /** See `identifiers.ts`. */
  readonly identifiers: string;
  /** The agent's credential besides its certificate; empty without one. */
  readonly token: string;
  readonly capabilities: readonly string[];
  /** Which of the agent's links to this server this is, from 0. */
  readonly linkIndex: number;
  /** What its node serves for others; absent: nothing. */
  readonly services?: readonly AnnouncedService[];
  /** See `instance_id.ts`; absent or empty: it is not told. */
  readonly instanceId?: string;
}

/** One port of a service, and where the agent that announces it dials it. */
export interface AnnouncedService {
  readonly name: string;
  /** Empty: `default`. */
  readonly namespace: string;
  /** The service's own number. */
  readonly port: number;
  /** `tcp` or `udp`; empty: `tcp`. */
  readonly protocol: string;
  /** Such as `grpc`; empty: not told. */
  readonly appProtocol: string;
  /** An IP address or a host name. */
  readonly host: string;
  readonly targetPort: number;
}

/** An announced service that a server does not take. */
export interface ServiceRefusal {
  /** For people: which one. */
  readonly service: string;
  readonly reason: string;
}

/** What a server says. */
export type ServerEvent =
  | { readonly type: "hello"; readonly hello: ServerHello }
  | { readonly type: "drain" }
  | {
    readonly type: "reconnect";
    readonly reason: string;
    readonly delayMs: number;
  }
  | { readonly type: "peer-addresses"; readonly addresses: readonly string[] }
  | { readonly type: "ca-bundle"; readonly pem: Uint8Array }
  | { readonly type: "announced-services"; readonly names: readonly string[] }
  /** The agent's hello was accepted: the link stands. */
  | { readonly type: "admission" }
  | { readonly type: "refusal"; readonly reason: string }
  /** Of what the agent announced last; sent only when there is any. */
  | {
    readonly type: "service-refusals";
    readonly refused: readonly ServiceRefusal[];
  }
  /** Another process speaks for this node with the same key. */
  | { readonly type: "duplicate-identity"; readonly message: string }
  /** From a newer server; ignored. */
  | { readonly type: "unknown" };

/** What an agent says. */
export type AgentEvent =
  | { readonly type: "hello"; readonly hello: AgentHello }
  | { readonly type: "drain" }
  /** All that the node serves for others from now on. */
  | {
    readonly type: "services";
    readonly services: readonly AnnouncedService[];
  }
  /** Ids of the authorities that it trusts now; see `authority_ids.ts`. */
  | { readonly type: "trust"; readonly authorities: readonly string[] }
  | { readonly type: "unknown" };

/** Thrown for bytes that are no control message; the peer's fault. */
export class ControlError extends Error {
  override readonly name = "ControlError";
}

/** `link.proto` as protobufjs describes a schema. */
export const CONTROL_SCHEMA: protobuf.INamespace = {
  nested: {
    tunnel: {
      nested: {
        v1: {
          nested: {
            FromServer: {
              oneofs: {
                event: {
                  oneof: [
                    "hello",
                    "drain",
                    "reconnect",
                    "peerAddresses",
                    "caBundle",
                    "announcedServices",
                    "refusal",
                    "admission",
                    "serviceRefusals",
                    "duplicateIdentity",
                  ],
                },
              },
              fields: {
                hello: { type: "ServerHello", id: 1 },
                drain: { type: "Drain", id: 2 },
                reconnect: { type: "Reconnect", id: 3 },
                peerAddresses: { type: "PeerAddresses", id: 4 },
                caBundle: { type: "CaBundle", id: 5 },
                announcedServices: { type: "AnnouncedServices", id: 6 },
                refusal: { type: "Refusal", id: 7 },
                admission: { type: "Admission", id: 8 },
                serviceRefusals: { type: "ServiceRefusals", id: 9 },
                duplicateIdentity: { type: "DuplicateIdentity", id: 10 },
              },
            },
            FromAgent: {
              oneofs: {
                event: { oneof: ["hello", "drain", "services", "trust"] },
              },
              fields: {
                hello: { type: "AgentHello", id: 1 },
                drain: { type: "Drain", id: 2 },
                services: { type: "ServiceAnnouncement", id: 3 },
                trust: { type: "Trust", id: 4 },
              },
            },
            ServerHello: {
              fields: {
                version: { type: "uint32", id: 1 },
                software: { type: "string", id: 2 },
                serverId: { type: "string", id: 3 },
                serverCount: { type: "uint32", id: 4 },
                capabilities: { rule: "repeated", type: "string", id: 5 },
                instanceId: { type: "string", id: 6 },
              },
            },
            AgentHello: {
              fields: {
                version: { type: "uint32", id: 1 },
                software: { type: "string", id: 2 },
                agentId: { type: "string", id: 3 },
                identifiers: { type: "string", id: 4 },
                token: { type: "string", id: 5 },
                capabilities: { rule: "repeated", type: "string", id: 6 },
                linkIndex: { type: "uint32", id: 7 },
                services: { rule: "repeated", type: "AnnouncedService", id: 8 },
                instanceId: { type: "string", id: 9 },
              },
            },
            ServiceAnnouncement: {
              fields: {
                services: { rule: "repeated", type: "AnnouncedService", id: 1 },
              },
            },
            AnnouncedService: {
              fields: {
                name: { type: "string", id: 1 },
                namespace: { type: "string", id: 2 },
                port: { type: "uint32", id: 3 },
                protocol: { type: "string", id: 4 },
                appProtocol: { type: "string", id: 5 },
                host: { type: "string", id: 6 },
                targetPort: { type: "uint32", id: 7 },
              },
            },
            Trust: {
              fields: {
                authorities: { rule: "repeated", type: "string", id: 1 },
              },
            },
            Drain: { fields: {} },
            Reconnect: {
              fields: {
                reason: { type: "string", id: 1 },
                delayMs: { type: "uint32", id: 2 },
              },
            },
            PeerAddresses: {
              fields: {
                addresses: { rule: "repeated", type: "string", id: 1 },
              },
            },
            CaBundle: { fields: { pem: { type: "bytes", id: 1 } } },
            AnnouncedServices: {
              fields: { names: { rule: "repeated", type: "string", id: 1 } },
            },
            ServiceRefusals: {
              fields: {
                refused: { rule: "repeated", type: "ServiceRefusal", id: 1 },
              },
            },
            ServiceRefusal: {
              fields: {
                service: { type: "string", id: 1 },
                reason: { type: "string", id: 2 },
              },
            },
            DuplicateIdentity: {
              fields: { message: { type: "string", id: 1 } },
            },
            Admission: { fields: {} },
            Refusal: { fields: { reason: { type: "string", id: 1 } } },
          },
        },
      },
    },
  },
};

const SCHEMA = protobuf.Root.fromJSON(CONTROL_SCHEMA);
const FROM_SERVER = SCHEMA.lookupType("tunnel.v1.FromServer");
const FROM_AGENT = SCHEMA.lookupType("tunnel.v1.FromAgent");

/** Encodes what a server says. `unknown` cannot be said. */
export function encodeServerEvent(
  event: Exclude<ServerEvent, { type: "unknown" }>,
): Uint8Array {
  return FROM_SERVER.encode(FROM_SERVER.fromObject(fieldsOf(event))).finish();
}

/** Encodes what an agent says. `unknown` cannot be said. */
export function encodeAgentEvent(
  event: Exclude<AgentEvent, { type: "unknown" }>,
): Uint8Array {
  return FROM_AGENT.encode(FROM_AGENT.fromObject(fieldsOf(event))).finish();
}

/** @throws {ControlError} When `bytes` are no such message. */
export function decodeServerEvent(bytes: Uint8Array): ServerEvent {
  const { name, value } = decodeEvent(FROM_SERVER, bytes);
  switch (name) {
    case "hello":
      return { type: "hello", hello: value as unknown as ServerHello };
    case "drain":
      return { type: "drain" };
    case "reconnect":
      return {
        type: "reconnect",
        reason: value.reason as string,
        delayMs: value.delayMs as number,
      };
    case "peerAddresses":
      return { type: "peer-addresses", addresses: value.addresses as string[] };
    case "caBundle":
      return { type: "ca-bundle", pem: Uint8Array.from(value.pem as number[]) };
    case "announcedServices":
      return { type: "announced-services", names: value.names as string[] };
    case "admission":
      return { type: "admission" };
    case "refusal":
      return { type: "refusal", reason: value.reason as string };
    case "serviceRefusals":
      return {
        type: "service-refusals",
        refused: value.refused as ServiceRefusal[],
      };
    case "duplicateIdentity":
      return { type: "duplicate-identity", message: value.message as string };
    default:
      return { type: "unknown" };
  }
}

/** @throws {ControlError} When `bytes` are no such message. */
export function decodeAgentEvent(bytes: Uint8Array): AgentEvent {
  const { name, value } = decodeEvent(FROM_AGENT, bytes);
  switch (name) {
    case "hello":
      return { type: "hello", hello: value as unknown as AgentHello };
    case "drain":
      return { type: "drain" };
    case "services":
      return {
        type: "services",
        services: value.services as AnnouncedService[],
      };
    case "trust":
      return { type: "trust", authorities: value.authorities as string[] };
    default:
      return { type: "unknown" };
  }
}

/** `peer-addresses` → `peerAddresses`, with the rest of the event as fields. */
function fieldsOf(
  event: Exclude<ServerEvent | AgentEvent, { type: "unknown" }>,
): Record<string, unknown> {
  if (event.type === "hello") return { hello: event.hello };
  const { type, ...fields } = event;
  const name = type.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  return { [name]: fields };
}

function decodeEvent(
  type: protobuf.Type,
  bytes: Uint8Array,
): { name: string | undefined; value: Record<string, unknown> } {
  try {
    const decoded = type.toObject(type.decode(bytes), {
      defaults: true,
      arrays: true,
      oneofs: true,
    });
    const name = decoded.event as string | undefined;
    const value = name === undefined ? {} : decoded[name];
    return { name, value: value as Record<string, unknown> };
  } catch (cause) {
    // protobufjs answers malformed bytes with errors of several classes.
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new ControlError(
      `Cannot read a control message of ${bytes.length} bytes: ${detail}`,
      { cause },
    );
  }
}
