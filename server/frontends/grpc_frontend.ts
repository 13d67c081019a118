/**
 * The gRPC frontend: which methods a caller may call.
 *
 * @module
 */

import type { MethodHandler } from "../../proto/grpc/call.ts";
import { GrpcRouter } from "../../proto/grpc/server.ts";
import { failedDial } from "../../proto/link/dial_handler.ts";
import { nodeProblem, readWishes } from "../../proto/link/dial_wishes.ts";
import { proxyService } from "../../proto/link/proxy_service.ts";
import { join } from "../../proto/transfer/transfer.ts";
import type { CallerTools } from "../routing/caller_loads.ts";
import type { Caller } from "../policy/caller.ts";
import { PROXY_PATH } from "../../proto/link/capabilities.ts";

/** What the gRPC frontend needs from outside. */
export interface GrpcFrontendOptions extends CallerTools {
  readonly publicMethods: Readonly<Record<string, MethodHandler>>;
  /** +1 and −1 for every call. */
  counted(change: 1 | -1): void;
}

/** A router for the calls of one caller. */
export function frontendRouter(
  caller: Caller,
  options: GrpcFrontendOptions,
): GrpcRouter {
  const { timers, counted } = options;
  const proxy = proxyService({
    ...options,
    onDial(target, answer, { metadata, takeEarlyData, ...more }) {
      const problem = nodeProblem(metadata);
      if (problem !== undefined) return failedDial(answer, problem);
      const wishes = readWishes((field) => metadata.text(field));
      const { id, trace } = more;
      const request = { ...wishes, target, id, trace, caller, takeEarlyData };
      return options.dial(request, answer);
    },
    join: (caller, target) => {
      join(caller, target, () => counted(-1));
      counted(1);
    },
  });
  return new GrpcRouter({
    timers,
    methods: { ...options.publicMethods, [PROXY_PATH]: proxy },
  });
}
