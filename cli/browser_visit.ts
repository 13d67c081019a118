/**
 * Sends this user's browser to a link that nobody else may see.
 *
 * Attack in mind: a command line is every user's to read (`/proc/PID/cmdline`),
 * and a link that logs in is good for whoever opens it first. So a browser is
 * started with an address of loopback, and is sent on from there where the kernel
 * says that it is this user's.
 *
 * @module
 */

import type { HttpHandler } from "../net/admin/http_port.ts";
import { plain } from "../net/admin/http_endpoints.ts";
import { connectedUser } from "../net/libc/port_owner.ts";
import { listenHttp } from "../net/listen/listeners.ts";
import { portOf } from "../proto/peer/host_port.ts";

/** A browser that has not come by then does not. */
const VISIT_MS = 20_000;

/** What it takes of the machine. */
export interface VisitOptions {
  /** Starts a browser. @returns Whether it could be started. */
  readonly open: (url: string) => Promise<boolean>;
  /** Whose browsers are sent on. */
  readonly users: readonly number[];
  readonly timeoutMs?: number;
}

/** @returns Whether a browser came and was sent to `url`. */
export async function visit(
  url: string,
  { open, users, timeoutMs = VISIT_MS }: VisitOptions,
): Promise<boolean> {
  const came = Promise.withResolvers<boolean>();
  const answer: HttpHandler = ({ method, signal, url: asked }, peer) => {
    const user = connectedUser(portOf(peer.remoteAddress), listener.port);
    if (user === undefined || !users.includes(user)) {
      return plain(403, "This is for another user\n");
    }
    const isVisit = method === "GET" && new URL(asked).pathname === "/";
    if (!isVisit) return plain(404, "404 page not found\n");
    // It has the answer when it is gone.
    signal.addEventListener("abort", () => came.resolve(true));
    return new Response(null, {
      status: 303,
      headers: {
        "location": url,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
      },
    });
  };
  const listener = listenHttp({ hostname: "127.0.0.1", port: 0 }, answer);
  const late = setTimeout(() => came.resolve(false), timeoutMs);
  try {
    return await open(`http://${listener.address}/`) && await came.promise;
  } finally {
    clearTimeout(late);
    listener.close();
  }
}
