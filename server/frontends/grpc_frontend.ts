/**
 * The gRPC frontend: which methods a caller may call.
 *
 * @module
 */

import type { MethodHandler } from "../../proto/grpc/call.ts";
import { GrpcRouter } from "../../proto/grpc/server.ts";
import { type DialAnswer, failedDial } from "../../proto/link/dial_handler.ts";
import { nodeProblem, readWishes } from "../../proto/link/dial_wishes.ts";
import type { PendingDial } from "../../proto/link/link.ts";
import type { PacketObserver } from "../../proto/link/packet_observer.ts";
import { proxyService } from "../../proto/link/proxy_service.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { transfer } from "../../proto/transfer/transfer.ts";
import type { CallerDial } from "../routing/dialer.ts";
import type { Caller } from "../policy/caller.ts";
import { PROXY_PATH } from "../../proto/link/method_paths.ts";

/** What the gRPC frontend needs from outside. */
export interface GrpcFrontendOptions {
  readonly timers: Timers;
  readonly observer: PacketObserver;
  readonly messageBytesMax: number;
  readonly publicMethods: Readonly<Record<string, MethodHandler>>;
  dial(request: CallerDial, answer: DialAnswer): PendingDial;
  /** +1 and −1 for every call. */
  counted(change: 1 | -1): void;
}

/** A router for the calls of one caller. */
export function frontendRouter(
  caller: Caller,
  options: GrpcFrontendOptions,
): GrpcRouter {
  const { timers, observer, messageBytesMax, counted } = options;
  const proxy = proxyService({
    timers,
    observer,
    messageBytesMax,
    onDial(target, answer, { metadata, takeEarlyData, ...more }) {
      const problem = nodeProblem(metadata);
      if (problem !== undefined) return failedDial(answer, problem);
      const wishes = readWishes((field) => metadata.text(field));
      const { id, trace } = more;
      const request = { ...wishes, target, id, trace, caller, takeEarlyData };
      return options.dial(request, answer);
    },
    join: async (caller, target) => {
      counted(1);
      await transfer(caller, target);
      counted(-1);
    },
  });
  return new GrpcRouter({
    timers,
    methods: { ...options.publicMethods, [PROXY_PATH]: proxy },
  });
}
