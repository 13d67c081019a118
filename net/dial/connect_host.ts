/**
 * Connects to a host by name or address, without rules: to servers of ours, not
 * to targets (`dial.ts`).
 *
 * @module
 */

import { parseIpAddress } from "../../proto/peer/ip_address.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Stream } from "../stream/stream.ts";
import { connectToAddress } from "../stream/socket_connect.ts";
import { connectAny, interleaveFamilies } from "./happy_eyeballs.ts";
import type { Resolver } from "../names/resolver.ts";
import { systemResolver } from "../names/system_resolver.ts";
import { orAborted } from "../../platform/time/deadline.ts";

/** How {@linkcode connectToHost} is to behave. */
export interface HostConnectOptions {
  readonly timers: Timers;
  /** Gives it up; its reason is thrown. */
  readonly signal: AbortSignal;
  readonly resolver?: Resolver;
}

/**
 * Connects to the first address of `host` that answers.
 *
 * @throws {LookupError} Or a system error with its `code`.
 */
export async function connectToHost(
  host: string,
  port: number,
  { timers, signal, resolver = systemResolver }: HostConnectOptions,
): Promise<Stream> {
  if (parseIpAddress(host) !== undefined) {
    return await connectToAddress({ hostname: host, port }, signal);
  }
  const found = await orAborted(resolver.lookup(host), signal);
  return await connectAny<Stream>({
    addresses: interleaveFamilies(found),
    timers,
    signal,
    connect: (hostname, signal) => connectToAddress({ hostname, port }, signal),
    discard: (late) => late.close(),
  });
}
