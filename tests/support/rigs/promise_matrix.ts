/**
 * Which promises are tried over which carrier and through which frontend, with
 * both ends ours.
 *
 * @module
 */

import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { Carrier } from "../../../proto/link/link.ts";
import { Tunnel } from "./tunnel_harness.ts";
import {
  type PromiseCheck,
  PROMISES_ABOUT_ENDS,
  PROMISES_AMONG_OURS,
  PROMISES_TO_ALL,
} from "./tunnel_promises.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];

/** Ways in, and which promises are tried there. */
const FRONTENDS: readonly {
  readonly protocol: FrontendProtocol;
  readonly over: "unix" | "tcp";
  readonly promises: Readonly<Record<string, PromiseCheck>>;
}[] = [
  {
    protocol: "grpc",
    over: "unix",
    promises: {
      ...PROMISES_TO_ALL,
      ...PROMISES_AMONG_OURS,
      ...PROMISES_ABOUT_ENDS,
    },
  },
  {
    protocol: "http-connect",
    over: "unix",
    promises: { ...PROMISES_TO_ALL, ...PROMISES_AMONG_OURS },
  },
  {
    protocol: "http-connect",
    over: "tcp",
    promises: { ...PROMISES_AMONG_OURS, ...PROMISES_ABOUT_ENDS },
  },
  { protocol: "grpc", over: "tcp", promises: PROMISES_ABOUT_ENDS },
];

/** Moves megabytes: part of `task test`, too slow for `task ok`. */
export const BULK = /MiB/;

/** Defines the tests whose sentence is wanted. */
export function definePromises(wanted: (sentence: string) => boolean): void {
  for (const carrier of CARRIERS) {
    for (const { protocol, over, promises } of FRONTENDS) {
      for (const [sentence, check] of Object.entries(promises)) {
        if (!wanted(sentence)) continue;
        const name = `${carrier}, ${protocol} over ${over}: ${sentence}`;
        Deno.test(name, () => keep(check, carrier, protocol, over));
      }
    }
  }
}

async function keep(
  check: PromiseCheck,
  carrier: Carrier,
  protocol: FrontendProtocol,
  frontend: "unix" | "tcp",
): Promise<void> {
  await using tunnel = await Tunnel.linked(carrier, { frontend });
  await check({
    protocol,
    target: tunnel.target,
    dial: (dial) => tunnel.dial(protocol, dial),
    connect: () => tunnel.connect(protocol),
    cut: () => tunnel.cut(),
  });
}
