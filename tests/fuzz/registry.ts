/**
 * Every fuzz target of the project. A new one is added here and nowhere else.
 *
 * @module
 */

import type { FuzzTarget } from "./target.ts";
import { CANARY } from "./targets/canary.ts";
import { CONNECTION_CLIENT, CONNECTION_SERVER } from "./targets/connection.ts";
import { DISCOVERY } from "./targets/discovery.ts";
import { FRAMES } from "./targets/frames.ts";
import { GRPC_MESSAGES } from "./targets/grpc_messages.ts";
import { HPACK } from "./targets/hpack.ts";
import { HTTP1_REQUEST, HTTP1_RESPONSE } from "./targets/http1_head.ts";
import { KUBELET_REQUEST } from "./targets/kubelet_request.ts";
import { PACKETS } from "./targets/packets.ts";

/** In the order in which they run. None may ever break. */
export const TARGETS: readonly FuzzTarget[] = [
  FRAMES,
  HPACK,
  GRPC_MESSAGES,
  PACKETS,
  HTTP1_REQUEST,
  HTTP1_RESPONSE,
  KUBELET_REQUEST,
  DISCOVERY,
  CONNECTION_SERVER,
  CONNECTION_CLIENT,
];

/**
 * The target with a bug in it. If it is not found, the fuzzer finds nothing and
 * its silence about the others means nothing.
 */
export { CANARY };

/** Mutations within which the canary must break. */
export const CANARY_RUNS_MAX = 5000;
