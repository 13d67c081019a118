/**
 * HTTP of a process that has no port of its own: its parent listens, and passes
 * connections on.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Stream } from "../stream/stream.ts";
import { AdminFailure, type AdminWho } from "./admin_api.ts";
import { type HttpHandler, HttpPort } from "./http_port.ts";
import { PASSED_WHO } from "./http_request.ts";

/** What a port is for. */
export type HttpUse = "health" | "admin";

/** Where the parent listens for each; absent: it has no such port. */
export type PassedAddresses = {
  readonly [use in HttpUse]?: {
    readonly address: string;
    readonly port: number;
  };
};

/** A port of the parent's, as far as it is served here. */
export interface PassedPort {
  readonly address: string;
  readonly port: number;
  close(): void;
  /** Settles when it is served no more. */
  readonly finished: Promise<void>;
}

export class PassedHttp {
  readonly #ports = new Map<HttpUse, HttpPort>();

  constructor(private readonly addresses: PassedAddresses) {}

  /** As `listenHttp` does; `undefined`: the parent has no such port. */
  serve(use: HttpUse, handler: HttpHandler): PassedPort | undefined {
    const at = this.addresses[use];
    if (at === undefined) return undefined;
    const port = new HttpPort(handler, undefined, true);
    this.#ports.set(use, port);
    const closed = Promise.withResolvers<void>();
    return {
      ...at,
      close: () => {
        this.#ports.delete(use);
        port.close();
        closed.resolve();
      },
      finished: closed.promise,
    };
  }

  /** A connection that the parent passes on. */
  accept(use: HttpUse, stream: Stream): void {
    const port = this.#ports.get(use);
    if (port === undefined) return stream.close();
    unawaited("http", port.accept(stream), () => stream.close());
  }
}

/** Our parent says as whom who asks is known to it. */
export function passedDoor({ headers }: Pick<Request, "headers">): AdminWho {
  const text = headers.get(PASSED_WHO);
  if (text !== null) return JSON.parse(decodeURIComponent(text)) as AdminWho;
  throw new AdminFailure(401, { message: "Nobody is known to ask" });
}

/** What the parent says. */
export function passedWho({ name, role }: AdminWho): string {
  return encodeURIComponent(JSON.stringify({ name, role }));
}

let passed: PassedHttp | undefined;

/** From now on HTTP is served so; for the start of a process. */
export function passHttp(http: PassedHttp | undefined): void {
  passed = http;
}

/** Of this process; `undefined`: it has ports of its own. */
export function passedHttp(): PassedHttp | undefined {
  return passed;
}
