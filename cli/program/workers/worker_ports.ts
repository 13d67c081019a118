/**
 * The ports for health and administration of a program that consists of several
 * workers. They are the parent's, so they answer whatever becomes of a worker.
 *
 * @module
 */

import { plain } from "../../../net/admin/http_endpoints.ts";
import type {
  HttpUse,
  PassedAddresses,
} from "../../../net/admin/passed_http.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenHttp,
} from "../../../net/listen/listeners.ts";
import { WorkerAnswers, type Workers } from "./worker_answers.ts";

/** Where the program listens for each. */
export type WorkerAddresses = { readonly [use in HttpUse]?: ListenAddress };

export class WorkerPorts {
  readonly #listeners = new Map<HttpUse, BoundListener>();
  #answers: WorkerAnswers | undefined;

  /** @throws {ListenError} Nothing stays open. */
  constructor(addresses: WorkerAddresses) {
    try {
      for (const use of ["health", "admin"] as const) {
        const at = addresses[use];
        if (at !== undefined) this.#listeners.set(use, this.#listen(use, at));
      }
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
    this.#answers = new WorkerAnswers(workers);
  }

  close(): void {
    for (const listener of this.#listeners.values()) listener.close();
  }

  #listen(use: HttpUse, at: ListenAddress): BoundListener {
    return listenHttp(
      at,
      (request) =>
        this.#answers?.answer(use, request) ??
          plain(503, "the workers are starting"),
    );
  }
}
