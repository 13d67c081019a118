/**
 * Identifies callers by the way they came: what each way proves, and what it
 * does not.
 *
 * @module
 */

import type { AdminRole } from "../../proto/admin/api.ts";
import { isLoopback } from "../../proto/peer/ip_address.ts";
import {
  type PeerIdentity,
  reportedIdentity,
} from "../../proto/peer/peer_identity.ts";
import {
  type AdminDoor,
  AdminFailure,
  type AdminWay,
  type AdminWho,
} from "./admin_api.ts";
import type { AdminSessions } from "./admin_sessions.ts";
import { type AdminToken, TOKEN_FILES } from "./admin_token.ts";
import type { HttpPeer } from "./http_port.ts";

/**
 * A unix socket: the kernel tells the process's user. Without FFI it cannot be
 * asked, and the file's mode alone decides.
 *
 * @param roleOf The rights of a user who could open it.
 */
export function socketDoor(
  roleOf: (uid: number | undefined) => AdminRole | undefined,
): AdminDoor {
  return (_request, peer) => {
    const uid = peer.peerCredentials()?.uid;
    const role = roleOf(uid);
    const way = { kind: "socket", ...(uid !== undefined && { uid }) } as const;
    if (uid === undefined && role !== undefined) {
      return { role, name: "a process that opened the socket", way };
    }
    if (role !== undefined) return { role, name: `uid ${uid}`, way };
    throw new AdminFailure(403, {
      code: "TUN122",
      message:
        `This socket is for user ${Deno.uid()} and root, and not for user ` +
        `${uid}: run this as one of them, or start the program with ` +
        "--admin-socket-group",
    });
  };
}

/** The credentials for a port on loopback. */
export interface Tokens {
  /** Absent: there is no place for one. */
  readonly operate?: AdminToken | undefined;
  readonly view?: AdminToken | undefined;
  readonly sessions: AdminSessions;
}

/** A port of loopback: every user of the machine, and its browsers, reach it. */
export function loopbackDoor({ operate, view, sessions }: Tokens): AdminDoor {
  return (request, peer) => {
    refuseOthers(peer);
    refuseOtherSites(request);
    for (
      const [role, token] of [["operate", operate], ["view", view]] as const
    ) {
      if (!token?.isShown(request)) continue;
      const way = { kind: "token", role, mark: token.mark } as const;
      return { role, name: TOKEN_FILES[role], way };
    }
    const browser = sessions.whoOf(request);
    if (browser !== undefined) return browser;
    const isWrong = request.headers.has("authorization");
    throw new AdminFailure(401, {
      code: "TUN122",
      message: operate === undefined
        ? "This program has no --state-dir to keep a token in, so no client can " +
          "be known here: give it one"
        : isWrong
        ? `The token is not that of this program, which is in ${operate.path}`
        : "Every user of this machine reaches this port: send the token in " +
          `${operate.path} as "Authorization: Bearer …", use admin.sock, or ` +
          "open the link of tunnel dashboard",
    });
  };
}

/** A port for other machines, over TLS: whose certificate it is. */
export function certificateDoor(
  whoIs: (peer: HttpPeer) => AdminWho | undefined,
  mark: () => string,
): AdminDoor {
  return (request, peer) => {
    refuseOtherSites(request);
    const who = whoIs(peer);
    const { commonName, names, certificate } = peer.identity;
    if (who !== undefined) {
      const { organizations = [], notAfterMs = 0 } = certificate ?? {};
      const kept = { commonName, names, organizations, notAfterMs };
      return { ...who, way: { kind: "certificate", ...kept, mark: mark() } };
    }
    throw new AdminFailure(403, {
      code: "TUN122",
      message: `No admins entry of the policy is about ${
        JSON.stringify(commonName.slice(0, 100))
      }: add one to --policy-file`,
    });
  };
}

/**
 * A caller that `certificateDoor` has identified, as far as roles depend on it.
 */
export function keptIdentity(
  { kind: _, ...certificate }: AdminWay & { readonly kind: "certificate" },
): PeerIdentity {
  return reportedIdentity(certificate);
}

/**
 * A port that its user has bound to another address than loopback is plain HTTP
 * all the same: no token of ours belongs on that wire.
 */
function refuseOthers({ remoteAddress }: HttpPeer): void {
  const host = remoteAddress.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  if (isLoopback(host)) return;
  throw new AdminFailure(403, {
    code: "TUN122",
    message: "The API is not for other machines on this port, which has no " +
      "TLS: ask on --admin-remote-port with a certificate",
  });
}

/**
 * Attack in mind: a page of another site in a browser of this machine, which
 * may send forms and simple requests anywhere, with our cookie or our
 * certificate. It cannot hide its origin, and cannot send a custom header
 * without a preflight request.
 */
export function refuseOtherSites(request: Request): void {
  const { headers, method, url } = request;
  const origin = headers.get("origin");
  const site = headers.get("sec-fetch-site");
  const isOther = origin !== null && !isOwn(origin, url) ||
    site !== null && site !== "same-origin" && site !== "none";
  if (isOther) {
    throw new AdminFailure(403, {
      code: "TUN122",
      message: "This request comes from a page of another site",
    });
  }
  if (method === "GET" || method === "HEAD") return;
  if (headers.has("x-tunnel-admin")) return;
  throw new AdminFailure(403, {
    code: "TUN122",
    message: "What is done here wants the header X-Tunnel-Admin: 1, which no " +
      "form of another site can send",
  });
}

/** TLS ends before the request is read, so its URL always begins with http. */
function isOwn(origin: string, url: string): boolean {
  const { host } = new URL(url);
  return origin === `http://${host}` || origin === `https://${host}`;
}
