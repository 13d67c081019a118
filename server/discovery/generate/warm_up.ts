/**
 * Makes what the first resources of each form need, before anybody asks: codecs
 * are compiled at first use, which takes a tenth of a second that the first
 * client, and after a restart all of them, would wait for.
 *
 * @module
 */

import {
  DIRECT,
  NO_AFFINITY,
  NO_POLICY,
} from "../../../catalog/model/model.ts";
import { FORMS } from "./audience.ts";
import type { Generate, ServiceInput } from "./service_resources.ts";

/** One port of each kind that is made into something else. */
const SAMPLE: ServiceInput = {
  service: {
    namespace: "warm-up",
    name: "sample",
    ports: [
      { name: "tcp", port: 1, protocol: "tcp" },
      { name: "http", port: 2, protocol: "tcp", appProtocol: "http" },
      { name: "udp", port: 3, protocol: "udp" },
    ],
    affinity: NO_AFFINITY,
    policy: NO_POLICY,
  },
  endpoints: [{
    address: "192.0.2.1",
    ports: ["tcp", "http", "udp"].map((name) => ({ name, port: 1 })),
    state: "ready",
    weight: 1,
    via: DIRECT,
  }],
};

/** See the module description. Nothing of it is kept but the codecs. */
export function warmUp(generate: Generate): void {
  for (const form of FORMS) generate(SAMPLE, { form });
}
