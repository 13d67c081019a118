/**
 * A caller as one server describes it to another, and back: the fields that
 * policies and audit logs read, and nothing that could serve as a proof of
 * identity.
 *
 * It does not check whether the sender may make such a statement.
 *
 * @module
 */

import {
  Forwarded,
  type ForwardedCaller,
} from "../../proto/link/forwarding_messages.ts";
import type { Metadata } from "../../proto/grpc/metadata.ts";
import { GrpcError } from "../../proto/grpc/status.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { ANONYMOUS, reportedIdentity } from "../../proto/peer/peer_identity.ts";
import { hasUnseen } from "../../proto/peer/quoted.ts";
import { isNodeName } from "../../proto/identity/node_name.ts";
import type { Caller } from "../policy/caller.ts";

/** Of a call to `/ProxyService/Proxy`; SPEC.md, "Forwarding". */
export const FORWARDED_FIELD = "tunnel-forwarded-bin";

/**
 * A certificate may have names without end, and base64 of this leaves half of a
 * header list (64 KiB) to the rest.
 */
export const FORWARDED_BYTES_MAX: number = 24 * 1024;

/** As in DNS; `--server-id` is usually a host name. */
const SERVER_ID_LENGTH_MAX = 253;

/** A server's facts about a dial that it forwards. */
export interface ForwardedDial {
  readonly caller: Caller;
  /** The server that forwards it has a policy. */
  readonly hasPolicy: boolean;
}

/**
 * The value of {@linkcode FORWARDED_FIELD}.
 *
 * @param serverId Ours.
 * @throws {DialError} When it would be too long: a name that is left out could
 *   be the one that a rule denies.
 */
export function encodeForwarded(
  { caller, hasPolicy }: ForwardedDial,
  serverId: string,
): Uint8Array {
  const { identity, node } = caller;
  const credentials = caller.peerCredentials?.();
  const bytes = Forwarded.encode({
    serverId,
    hasPolicy,
    caller: {
      remoteAddress: caller.remoteAddress,
      localAddress: caller.localAddress,
      node,
      ...(identity.kind === "anonymous" ? {} : {
        certificate: {
          commonName: identity.commonName,
          fingerprint: identity.fingerprint,
          names: identity.names,
          organizations: identity.certificate?.organizations ?? [],
        },
      }),
      process: credentials,
    },
  });
  if (bytes.length <= FORWARDED_BYTES_MAX) return bytes;
  throw new DialError(
    "refused",
    `Cannot forward this dial: what the caller's certificate says has ` +
      `${bytes.length} bytes, ${FORWARDED_BYTES_MAX} are allowed; give it ` +
      "fewer names",
    { code: "TUN501" },
  );
}

/** What {@linkcode encodeForwarded} wrote. @throws {DialError} When it is not that. */
export function decodeForwarded(metadata: Metadata): ForwardedDial {
  const values = metadata.all(FORWARDED_FIELD);
  const [bytes] = values;
  if (values.length !== 1 || !(bytes instanceof Uint8Array)) {
    throw unreadable(`${values.length} fields ${FORWARDED_FIELD}`);
  }
  const { serverId, hasPolicy, caller } = decoded(bytes);
  if (caller === null) throw unreadable("no caller");
  if (serverId === "" || serverId.length > SERVER_ID_LENGTH_MAX) {
    throw unreadable(`a server id of ${serverId.length} characters`);
  }
  if (hasUnseen(serverId)) {
    throw unreadable("a server id with invisible characters");
  }
  // As a node the caller could be admitted where only a node's services are
  // allowed.
  if (caller.node !== "" && !isNodeName(caller.node)) {
    throw unreadable("a node's name that is none");
  }
  return { caller: callerOf(caller, serverId), hasPolicy };
}

function decoded(bytes: Uint8Array): Forwarded {
  try {
    return Forwarded.decode(bytes);
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    throw unreadable(error.message);
  }
}

function callerOf(
  { remoteAddress, localAddress, node, certificate, process }: ForwardedCaller,
  forwardedBy: string,
): Caller {
  return {
    identity: certificate === null ? ANONYMOUS : reportedIdentity(certificate),
    remoteAddress,
    localAddress,
    node: node || undefined,
    ...(process === null ? {} : { peerCredentials: () => process }),
    forwardedBy,
  };
}

function unreadable(seen: string): DialError {
  return new DialError(
    "refused",
    `Cannot take this dial from a server: saw ${seen}, wanted whose dial it ` +
      "is; run the same version on all servers",
    { code: "TUN501" },
  );
}
