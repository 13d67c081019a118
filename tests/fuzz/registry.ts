/**
 * Every fuzz target of the project. A new one is added here and nowhere else.
 *
 * @module
 */

import type { FuzzTarget } from "./target.ts";
import { CONNECTION_CLIENT, CONNECTION_SERVER } from "./targets/connection.ts";
import { DISCOVERY } from "./targets/discovery.ts";
import { FRAMES } from "./targets/frames.ts";
import { GRPC_MESSAGES } from "./targets/grpc_messages.ts";
import { HPACK } from "./targets/hpack.ts";
import { HTTP1_REQUEST, HTTP1_RESPONSE } from "./targets/http1_head.ts";
import { KUBELET_REQUEST } from "./targets/kubelet_request.ts";
import { PACKETS } from "./targets/packets.ts";
import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";

/** Type byte, length byte, payload. */
function record(type: number, text: string): Uint8Array {
  return Uint8Array.of(type, text.length, ...new TextEncoder().encode(text));
}

const MARK = 3;

const CANARY: FuzzTarget = {
  name: "canary",
  seeds: [
    joinedBytes([record(1, "hello"), record(2, "world")]),
    joinedBytes([record(1, ""), record(MARK, "mark")]),
  ],
  dictionary: [],

  split(input) {
    const records: Uint8Array[] = [];
    for (let at = 0; at < input.length;) {
      const end = at + 2 + (input[at + 1] ?? 0);
      records.push(input.subarray(at, end));
      at = end;
    }
    return records;
  },

  repair(record) {
    if (record.length < 2) return record;
    const repaired = record.slice(0, 257);
    repaired[1] = repaired.length - 2;
    return repaired;
  },

  run(input) {
    const seen: string[] = [];
    for (let at = 0; at + 1 < input.length;) {
      const [type, length] = [input[at]!, input[at + 1]!];
      // The bug: only one type of record forgets to look at what is there.
      if (type === MARK && at + 2 + length > input.length) {
        throw new RangeError("The canary has read behind its input");
      }
      seen.push(type <= MARK ? `${type}` : "other");
      at += 2 + length;
    }
    return seen.slice(0, 4).join();
  },
};

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
