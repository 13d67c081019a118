/**
 * The ports for health and administration of a program that consists of several
 * workers. They are the parent's, so they answer whatever becomes of a worker.
 *
 * @module
 */

import {
  actionLog,
  adminApi,
  type AdminDoor,
  AdminFailure,
  failureAnswer,
  knownBy,
  whoIf,
} from "../../../net/admin/admin_api.ts";
import { plain, withApi } from "../../../net/admin/http_endpoints.ts";
import type { HttpHandler, HttpPeer } from "../../../net/admin/http_port.ts";
import type {
  HttpUse,
  PassedAddresses,
} from "../../../net/admin/passed_http.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenHttp,
} from "../../../net/listen/listeners.ts";
import { type AdminAccess, AdminPort } from "../../../net/listen/admin_port.ts";
import type { Log } from "../../../platform/log/log.ts";
import { WorkerApi } from "./worker_api.ts";
import { WorkerAnswers, type Workers } from "./worker_answers.ts";

/** Where the program listens for each, and who may administrate it. */
export type WorkerAddresses =
  & { readonly [use in HttpUse]?: ListenAddress }
  & {
    readonly access?: AdminAccess;
    /** Pages on the admin port that are the same for all workers. */
    readonly pages?:
      | ((door: AdminDoor, others: HttpHandler) => HttpHandler)
      | undefined;
  };

export class WorkerPorts {
  readonly #listeners = new Map<HttpUse, BoundListener>();
  readonly #pages: WorkerAddresses["pages"];
  #admin: AdminPort | undefined;
  #answers:
    | { readonly all: WorkerAnswers; readonly api: WorkerApi }
    | undefined;

  /** @throws {ListenError} Nothing stays open. */
  constructor(
    { health, admin, access = {}, pages }: WorkerAddresses,
    private readonly log: Log,
  ) {
    this.#pages = pages;
    try {
      if (health !== undefined) {
        const listener = listenHttp(
          health,
          (request) =>
            this.#answers?.all.answer("health", request) ?? STARTING(),
        );
        this.#listeners.set("health", listener);
      }
      if (admin === undefined) return;
      this.#admin = this.#openAdmin(admin, access);
      this.#listeners.set("admin", this.#admin);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** For workers, which have no such ports of their own. */
  get passed(): PassedAddresses {
    return Object.fromEntries(
      [...this.#listeners].map(([use, { address, port }]) => [
        use,
        { address, port },
      ]),
    );
  }

  /** For the log. */
  get addresses(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      [...this.#listeners].map(([use, { address }]) => [use, address]),
    );
  }

  /** From now on these answer. */
  open(workers: Workers): void {
    this.#answers = {
      all: new WorkerAnswers(workers),
      api: new WorkerApi(workers),
    };
    this.#admin?.openSoon();
  }

  close(): void {
    for (const listener of this.#listeners.values()) listener.close();
  }

  /** Who asks is known here; workers believe what their parent says. */
  #openAdmin(address: ListenAddress, access: AdminAccess): AdminPort {
    return new AdminPort({
      address,
      access,
      log: this.log,
      handler: (door, routes) => {
        const own = adminApi(routes, { who: door, did: actionLog(this.log) });
        const ownPaths = new Set(routes.map(({ path }) => path));
        const others: HttpHandler = (request, peer) =>
          this.#answers?.all.answer(
            "admin",
            request,
            whoIf(door, request, peer),
          ) ?? STARTING();
        return withApi(
          (request, peer) =>
            ownPaths.has(new URL(request.url).pathname)
              ? own(request, peer)
              : this.#api(door, request, peer),
          this.#pages?.(door, others) ?? others,
        );
      },
    });
  }

  async #api(
    door: AdminDoor,
    request: Request,
    peer: HttpPeer,
  ): Promise<Response> {
    try {
      const who = knownBy(door, request, peer);
      const answer = await this.#answers?.api.answer(request, peer, who) ??
        STARTING();
      // What a worker has done, or refused, it has written down.
      const { status } = answer;
      if (request.method === "POST" && status === 404) {
        const path = new URL(request.url).pathname;
        const problem = "no worker knows of it";
        actionLog(this.log)({ who, path, status, problem });
      }
      return answer;
    } catch (error) {
      if (error instanceof AdminFailure) return failureAnswer(error);
      throw error;
    }
  }
}

const STARTING = () => plain(503, "the workers are starting");
