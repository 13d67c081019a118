/**
 * The position of a process that is one of several workers of one program;
 * their parent answers for all of them.
 *
 * Each worker has an admin socket of its own. Ports cannot be distinguished
 * like that, so the first worker has those of administration, and the parent
 * has that of health.
 *
 * @module
 */

import type { HttpHandler } from "./http_port.ts";

/** The workers that this process is one of. */
export interface OwnGroup {
  /** Which one this is, from 0. */
  readonly index: number;
  readonly count: number;
  /** The parent's port for probes; absent: none. */
  readonly health?:
    | { readonly address: string; readonly port: number }
    | undefined;
  /** Answers the parent, who asks for `/readyz` and `/metrics` of this process. */
  tells?: HttpHandler;
  /** What the parent answers for all of them. */
  ask(path: string): Promise<Response>;
}

let own: OwnGroup | undefined;

/** Read at the start of a process; `undefined`: it is no worker. */
export function joinGroup(group: OwnGroup | undefined): void {
  own = group;
}

/** `undefined`: this process is the only one of its program. */
export function ownGroup(): OwnGroup | undefined {
  return own;
}

/** Whether what only one process of a program can have is this one's. */
export function isFirstWorker(): boolean {
  return (own?.index ?? 0) === 0;
}

/** Which of how many this is, as answers say it. */
export function workerFacts(): { worker?: number; workers?: number } {
  return own === undefined ? {} : { worker: own.index, workers: own.count };
}

/** The socket of one of them, where the program's is at `path`. */
export function workerSocket(path: string, index: number): string {
  return index === 0 ? path : path.replace(/(?:\.sock)?$/, `.${index}$&`);
}

/** Paths that are about the whole program. */
const OF_ALL: ReadonlySet<string> = new Set([
  "/healthz",
  "/readyz",
  "/ready",
  "/metrics",
]);

/** For a port that answers for the whole program. */
export function withGroup(handler: HttpHandler): HttpHandler {
  return (request, peer) => {
    const { pathname, search } = new URL(request.url);
    const isRead = request.method === "GET" || request.method === "HEAD";
    return own !== undefined && isRead && OF_ALL.has(pathname)
      ? own.ask(pathname + search)
      : handler(request, peer);
  };
}
