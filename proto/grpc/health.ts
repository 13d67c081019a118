/**
 * `grpc.health.v1.Health`: reports whether services are being served.
 *
 * Layer: gRPC. Holds what `setStatus` sets and answers requests; it finds out
 * nothing by itself.
 *
 * @module
 */

import { reportFault } from "../sync/faults.ts";
import type { MethodHandler, ServerCall, ServerCallEvents } from "./call.ts";
import {
  HEALTH_METHODS,
  HealthCheckRequest,
  HealthCheckResponse,
  HealthListResponse,
  ServingStatus,
} from "./health_messages.ts";
import { encodingOf, OnlyMessage } from "./message_reader.ts";
import { GrpcError, StatusCode } from "./status.ts";
import { unaryMethod } from "./server.ts";

/** A service name is all a request holds; no service has a longer one. */
const REQUEST_BYTES_MAX = 4096;

export class HealthService {
  readonly #statuses = new Map<string, number>();
  readonly #watchers = new Set<Watcher>();

  /** For `GrpcRouter`. */
  readonly methods: Readonly<Record<string, MethodHandler>> = {
    [HEALTH_METHODS.check]: unaryMethod(
      (request) => Promise.resolve(request).then((r) => this.#check(r)),
      { messageBytesMax: REQUEST_BYTES_MAX },
    ),
    [HEALTH_METHODS.list]: unaryMethod(
      () => Promise.resolve(this.#list()),
      { messageBytesMax: REQUEST_BYTES_MAX },
    ),
    [HEALTH_METHODS.watch]: (call) => this.#watch(call),
  };

  /**
   * Sets the reported status of `service`.
   *
   * @param service Full service name; empty for the server as a whole.
   */
  setStatus(service: string, status: "SERVING" | "NOT_SERVING"): void {
    this.#statuses.set(service, ServingStatus[status]);
    for (const watcher of this.#watchers) {
      try {
        watcher.update();
      } catch (error) {
        reportFault("stream", error);
      }
    }
  }

  /** Watches that are open. */
  get watcherCount(): number {
    return this.#watchers.size;
  }

  #check(request: Uint8Array): Uint8Array {
    const { service } = HealthCheckRequest.decode(request);
    const status = this.#statuses.get(service);
    if (status === undefined) {
      throw new GrpcError(
        StatusCode.NOT_FOUND,
        `unknown service ${JSON.stringify(service)}`,
      );
    }
    return HealthCheckResponse.encode({ status });
  }

  #list(): Uint8Array {
    const entries = [...this.#statuses].map(([service, status]) =>
      [service, { status }] as const
    );
    return HealthListResponse.encode({ statuses: Object.fromEntries(entries) });
  }

  #watch(call: ServerCall): ServerCallEvents {
    const only = new OnlyMessage("request", REQUEST_BYTES_MAX);
    only.expect(encodingOf(call.metadata));
    let watcher: Watcher | undefined;
    return {
      onBody(chunk) {
        only.push(chunk);
        call.consumed(chunk.length);
      },
      onHalfClose: () => {
        const { service } = HealthCheckRequest.decode(only.take());
        watcher = new Watcher(
          call,
          () => this.#statuses.get(service) ?? ServingStatus.SERVICE_UNKNOWN,
        );
        this.#watchers.add(watcher);
        watcher.update();
      },
      onWritable: () => watcher?.update(),
      onCancel: () => {
        if (watcher !== undefined) this.#watchers.delete(watcher);
      },
    };
  }
}

/**
 * One `Watch`. A watcher that does not read misses intermediate states, never
 * the latest, and at most one answer is kept for it.
 */
class Watcher {
  #reported: number | undefined;

  constructor(
    private readonly call: ServerCall,
    private readonly current: () => number,
  ) {}

  update(): void {
    const status = this.current();
    if (status === this.#reported || this.call.keptBytes > 0) return;
    this.#reported = status;
    this.call.sendMessage(HealthCheckResponse.encode({ status }));
  }
}
