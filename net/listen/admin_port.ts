/**
 * The ports of a program's admin API: a port on loopback for callers with a
 * token, a unix socket for users who may open it, and, if requested, a port for
 * other machines with TLS and certificates.
 *
 * Each of several workers has a socket; only the first has tokens and ports.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { isSystemError } from "../../platform/files/file_error.ts";
import type { Log } from "../../platform/log/log.ts";
import { atMost } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  ADMIN_SOCKET,
  adminApi,
  type AdminApiOptions,
  type AdminDoor,
  AdminFailure,
  type AdminRoute,
  type AdminWay,
  failureAnswer,
  knownBy,
} from "../admin/admin_api.ts";
import {
  certificateDoor,
  keptIdentity,
  loopbackDoor,
  refuseOtherSites,
  socketDoor,
} from "../admin/admin_doors.ts";
import { AdminSessions } from "../admin/admin_sessions.ts";
import { AdminToken, markOf, TOKEN_FILES } from "../admin/admin_token.ts";
import { withApi } from "../admin/http_endpoints.ts";
import {
  type HttpHandler,
  HttpPort,
  type LimitReached,
} from "../admin/http_port.ts";
import {
  isFirstWorker,
  ownGroup,
  withGroup,
  workerSocket,
} from "../admin/own_group.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import { tunnelCodeOf } from "../../proto/codes/codes.ts";
import { type AdminRemote, listenAdminRemote } from "./admin_remote.ts";
import { ListenError } from "../bind/listen_error.ts";
import { isInGroup } from "../libc/peer_credentials.ts";
import { HAS_UNIX_SOCKETS } from "../stream/socket_connect.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenHttp,
  listenUnix,
} from "./listeners.ts";

/** The addresses, and who may use them. */
export interface AdminAccess {
  /** The directory for tokens and the socket; absent: it has neither. */
  readonly stateDirectory?: string | undefined;
  /** In place of `admin.sock` in the state directory; `""`: none. */
  readonly socket?: string | undefined;
  /** The number of the group that may use the socket beside its owner. */
  readonly socketGroup?: number | undefined;
  /** The rights of other users on the socket; absent: none. */
  readonly roleOfUser?: ((uid: number) => AdminRole | undefined) | undefined;
  /** The port for other machines; absent: none. */
  readonly remote?: AdminRemote | undefined;
}

/**
 * The socket's path, for several workers that of the first; absent: there is
 * none.
 */
export function adminSocketOf(
  { stateDirectory, socket }: Pick<AdminAccess, "stateDirectory" | "socket">,
): string | undefined {
  const own = HAS_UNIX_SOCKETS && stateDirectory &&
    `${stateDirectory}/${ADMIN_SOCKET}`;
  return (socket ?? own) || undefined;
}

/** The handlers. */
export interface AdminPortOptions {
  /** Absent: it is reached by its socket alone. */
  readonly address?: ListenAddress | undefined;
  readonly access: AdminAccess;
  /**
   * Answers callers that came by `door`; `routes` are those of the port itself.
   */
  handler(door: AdminDoor, routes: readonly AdminRoute[]): HttpHandler;
  readonly log: Log;
  readonly reached?: LimitReached;
}

/** How long an end waits for what is being written: a disk may hang. */
const WRITTEN_MS = 2_000;

/** A handler of the API, beside what a port has always answered. */
export function apiBeside(
  routes: readonly AdminRoute[],
  others: (door: AdminDoor) => HttpHandler,
  did?: AdminApiOptions["did"],
): AdminPortOptions["handler"] {
  return (who, own) => {
    const api = adminApi([...routes, ...own], { who, did });
    return withApi(api, others(who));
  };
}

export class AdminPort implements BoundListener {
  readonly #listeners: BoundListener[] = [];
  readonly #ports: HttpPort[] = [];
  readonly #sessions = new AdminSessions({
    origin: () => `http://${this.#browserHost}`,
    token: () => this.#token("operate")?.value,
    path: () => this.#inState(`admin-logins-${this.port}.jsonl`),
    roleOf: (way) => this.#roleOf(way),
    log: () => this.options.log,
  });
  readonly #loopback: BoundListener | undefined;
  readonly #finished = Promise.withResolvers<void>();
  #socket = "";
  #remote = "";
  /** Without a caller that waits for it. */
  #opening: Promise<void> | undefined;
  #isClosed = false;

  /** @throws {ListenError} For its port of loopback; nothing stays open. */
  constructor(private readonly options: AdminPortOptions) {
    const { address, reached } = options;
    const group = ownGroup();
    if (group) group.tells ??= this.#handler(socketDoor(() => undefined));
    if (address === undefined || !isFirstWorker()) return;
    this.#loopback = listenHttp(address, this.#onLoopback(), reached);
    this.#listeners.push(this.#loopback);
  }

  /** The port on loopback; `""`: there is none. */
  get address(): string {
    return this.#loopback?.address ?? "";
  }

  get port(): number {
    return this.#loopback?.port ?? 0;
  }

  /** The socket's path; `""`: there is none, or not yet. */
  get socket(): string {
    return this.#socket;
  }

  /** The port for other machines; `""`: there is none, or not yet. */
  get remote(): string {
    return this.#remote;
  }

  /**
   * Makes tokens and opens the other ways in.
   *
   * @throws {ListenError} For what its user has named.
   */
  async open(): Promise<void> {
    const { access: { stateDirectory, socket, remote }, log } = this.options;
    if (stateDirectory !== undefined) await makeDirectory(stateDirectory);
    if (isFirstWorker()) {
      if (remote !== undefined) this.#listenRemote(remote);
      for (const role of ["operate", "view"] as const) {
        if (this.#isClosed) return;
        await this.#token(role)
          ?.make(log, "it identifies no caller on the admin port");
      }
    }
    const isNamed = socket !== undefined;
    const path = adminSocketOf({ stateDirectory, socket });
    if (path === undefined || this.#isClosed) return;
    try {
      await this.#listenUnix(workerSocket(path, ownGroup()?.index ?? 0));
    } catch (error) {
      if (isNamed || !(error instanceof ListenError)) throw error;
      log.info(`${error.message}: ask this program on ${this.address}`);
    }
  }

  /** The same without waiting: a failure is logged. */
  openSoon(): void {
    const { log } = this.options;
    const opened = () => {
      const [socket, remote] = [this.#socket, this.#remote];
      if (socket === "" && remote === "") return;
      log.info("admin API opened", {
        adminSocket: socket || undefined,
        adminRemote: remote || undefined,
      });
    };
    this.#opening = this.open().then(opened, (error) => {
      if (!(error instanceof ListenError)) throw error;
      log.error(
        `${error.message}; change --admin-socket or --admin-remote-port`,
        { code: tunnelCodeOf(error) ?? "TUN904" },
      );
    });
    unawaited("task", this.#opening);
  }

  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  close(): void {
    this.#isClosed = true;
    for (const listener of this.#listeners) listener.close();
    const ports = this.#ports.map((port) => port.close());
    // A token that is being written is not left behind half done.
    const opened = this.#opening &&
      atMost(systemTimers, WRITTEN_MS, this.#opening);
    this.#finished.resolve(
      Promise.all([this.#loopback?.finished, ...ports, opened]).then(() => {}),
    );
  }

  async #listenUnix(path: string): Promise<void> {
    const { access: { socketGroup }, reached, log } = this.options;
    const hasGroup = socketGroup !== undefined;
    const handler = this.#handler(
      socketDoor((uid) =>
        this.#roleOfUser(uid) ?? (hasGroup ? "view" : undefined)
      ),
    );
    const port = new HttpPort(handler, reached);
    const listener = await listenUnix(
      path,
      {
        use: "administration",
        onConnection: (stream) => port.take(stream),
        onProblem: () => {},
      },
      true,
      0o600,
    );
    if (this.#isClosed) return listener.close();
    this.#listeners.push(listener);
    this.#ports.push(port);
    this.#socket = path;
    if (!hasGroup) return;
    try {
      await Deno.chown(path, null, socketGroup);
      await Deno.chmod(path, 0o660);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      log.warn(
        `Cannot give ${path} to group ${socketGroup}: ${error.message}; it is ` +
          "for its owner alone",
        { code: "TUN114" },
      );
    }
  }

  #listenRemote(remote: AdminRemote): void {
    const { reached, log } = this.options;
    const door = certificateDoor(
      (peer) => remote.whoIs(peer),
      () => markOf(remote.credentials.current.ca),
    );
    const port = new HttpPort(
      knownOnly(door, withGroup(this.#handler(door))),
      reached,
    );
    const listener = listenAdminRemote(remote, port, log);
    this.#listeners.push(listener);
    this.#ports.push(port);
    this.#remote = listener.address;
  }

  #onLoopback(): HttpHandler {
    const handler = this.#handler(
      loopbackDoor({
        operate: this.#token("operate"),
        view: this.#token("view"),
        sessions: this.#sessions,
      }),
    );
    return this.#sessions.handler(withGroup(handler), refuseOtherSites);
  }

  /** @returns `undefined`: there is no place for it. */
  #inState(file: string): string | undefined {
    const { stateDirectory } = this.options.access;
    return stateDirectory && `${stateDirectory}/${file}`;
  }

  #token(role: AdminRole): AdminToken | undefined {
    const path = this.#inState(TOKEN_FILES[role]);
    return path === undefined ? undefined : new AdminToken(path);
  }

  /** For a process that has opened the socket, whatever its groups are. */
  #roleOfUser(uid: number | undefined): AdminRole | undefined {
    const { roleOfUser, socketGroup } = this.options.access;
    // The user is unknown: the file's mode has decided.
    if (uid === undefined && socketGroup === undefined) return "operate";
    if (uid === undefined) return "view";
    return uid === 0 || uid === Deno.uid() ? "operate" : roleOfUser?.(uid);
  }

  /** The present rights of a user who was identified by `way`. */
  #roleOf(way: AdminWay): AdminRole | undefined {
    const { remote, socketGroup } = this.options.access;
    switch (way.kind) {
      case "socket": {
        const isMember = () =>
          socketGroup !== undefined && isInGroup(way.uid ?? 0, socketGroup);
        return this.#roleOfUser(way.uid) ?? (isMember() ? "view" : undefined);
      }
      case "token":
        return this.#token(way.role)?.mark === way.mark ? way.role : undefined;
      case "certificate": {
        const { mark, notAfterMs } = way;
        if (remote === undefined || notAfterMs <= Date.now()) return undefined;
        if (markOf(remote.credentials.current.ca) !== mark) return undefined;
        return remote.whoIs({ identity: keptIdentity(way) })?.role;
      }
    }
  }

  #handler(door: AdminDoor): HttpHandler {
    return this.options.handler(door, this.#sessions.routes);
  }

  /** Every address of the machine is also this one. */
  get #browserHost(): string {
    const { address, port } = this;
    return /^(?:\[::\]|0\.0\.0\.0):/.test(address)
      ? `127.0.0.1:${port}`
      : address;
  }
}

/**
 * On loopback every caller may read metrics and profiles. On the port for other
 * machines the authority may have signed every node's certificate, so the
 * handshake alone gives no right to them; and a profile stops the process,
 * which only an operator may do.
 */
function knownOnly(door: AdminDoor, handler: HttpHandler): HttpHandler {
  return (request, peer) => {
    try {
      const { role, name } = knownBy(door, request, peer);
      const { pathname } = new URL(request.url);
      if (role === "operate" || !pathname.startsWith(PROFILES)) {
        return handler(request, peer);
      }
      throw new AdminFailure(403, {
        code: "TUN122",
        message: `${name} may look here, and not take profiles: it takes the ` +
          'role "operate"',
      });
    } catch (error) {
      if (error instanceof AdminFailure) return failureAnswer(error);
      throw error;
    }
  };
}

const PROFILES = "/debug/pprof";

async function makeDirectory(path: string): Promise<void> {
  try {
    await Deno.mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    // The writer reports it.
    if (!isSystemError(error)) throw error;
  }
}
