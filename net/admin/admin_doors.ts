/**
 * Who asks, by the way they came: what each way proves, and what it does not.
 *
 * @module
 */

import type { AdminRole } from "../../proto/admin/api.ts";
import { isLoopback } from "../../proto/peer/ip_address.ts";
import { AdminFailure, type AdminWho } from "./admin_api.ts";
import type { AdminSessions } from "./admin_sessions.ts";
import type { AdminToken } from "./admin_token.ts";
import type { HttpPeer } from "./http_port.ts";

/**
 * One way in.
 *
 * @throws {AdminFailure} When nobody is known to ask, or may.
 */
export type AdminDoor = (request: Request, peer: HttpPeer) => AdminWho;

/**
 * A unix socket: the kernel says whose process it is. Where it cannot be asked
 * (no FFI), the file's mode is all that there is to go by.
 *
 * @param group Whether the socket is for a group beside its owner.
 * @param own Our user.
 * @param roleOfUser What is said of others.
 */
export function socketDoor(
  { hasGroup, own = Deno.uid() ?? -1, roleOfUser = () => undefined }: {
    readonly hasGroup: boolean;
    readonly own?: number;
    readonly roleOfUser?: ((uid: number) => AdminRole | undefined) | undefined;
  },
): AdminDoor {
  return (_request, peer) => {
    const credentials = peer.peerCredentials();
    if (credentials === undefined) {
      const role: AdminRole = hasGroup ? "view" : "operate";
      return { role, name: "a process that opened the socket" };
    }
    const { uid } = credentials;
    if (uid === own || uid === 0) {
      return { role: "operate", name: `uid ${uid}` };
    }
    const role = roleOfUser(uid) ?? (hasGroup ? "view" : undefined);
    if (role !== undefined) return { role, name: `uid ${uid}` };
    throw new AdminFailure(403, {
      code: "TUN122",
      message: `This socket is for user ${own} and root, and not for user ` +
        `${uid}: run this as one of them, or start the program with ` +
        "--admin-socket-group",
    });
  };
}

/** What is shown to a port of loopback. */
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
    if (operate?.isShown(request)) {
      return { role: "operate", name: "admin.token" };
    }
    if (view?.isShown(request)) {
      return { role: "view", name: "admin-view.token" };
    }
    const browser = sessions.whoOf(request);
    if (browser !== undefined) return browser;
    const isWrong = request.headers.has("authorization");
    throw new AdminFailure(401, {
      code: "TUN122",
      message: operate === undefined
        ? "This program has no --state-dir to keep a token in, so nobody can " +
          "be known here: give it one"
        : isWrong
        ? `The token is not that of this program, which is in ${operate.path}`
        : "Every user of this machine reaches this port: send what is in " +
          `${operate.path} as "Authorization: Bearer …", use admin.sock, or ` +
          "open the link of tunnel dashboard",
    });
  };
}

/** A port for other machines, over TLS: whose certificate it is. */
export function certificateDoor(
  whoIs: (peer: HttpPeer) => AdminWho | undefined,
): AdminDoor {
  return (request, peer) => {
    refuseOtherSites(request);
    const who = whoIs(peer);
    if (who !== undefined) return who;
    const { commonName } = peer.identity;
    throw new AdminFailure(403, {
      code: "TUN122",
      message: `No admins entry of the policy is about ${
        JSON.stringify(commonName.slice(0, 100))
      }: add one to --policy-file`,
    });
  };
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
 * Attack in mind: a page of another site in a browser of this machine, which may
 * send forms and simple requests anywhere, with our cookie or our certificate. It
 * cannot hide its origin, nor send a header of its own without asking first.
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
