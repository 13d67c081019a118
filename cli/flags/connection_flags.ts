/**
 * Flags for what becomes of a service's connections, and when an endpoint is
 * left out: each of them for services that do not say it.
 *
 * @module
 */

import { CONNECTION_DEFAULTS } from "../../agent/proxy/defaults.ts";
import type { ConnectionDefaults } from "../../agent/proxy/listeners/proxied_port.ts";
import { ENDPOINT_ENDS } from "../../catalog/model/model.ts";
import {
  choiceFlag,
  countFlag,
  durationFlag,
  type FlagValues,
} from "./flag.ts";

const CONNECTIONS = "Connections";

const DEFAULTS = CONNECTION_DEFAULTS;

/** See the module description. */
export const CONNECTION_FLAGS = {
  "on-endpoint-removed": choiceFlag(
    ENDPOINT_ENDS,
    DEFAULTS.onEndpointRemoved,
    {
      group: CONNECTIONS,
      help: "What becomes of TCP connections when their endpoint is removed.",
    },
  ),
  "on-endpoint-down": choiceFlag(ENDPOINT_ENDS, DEFAULTS.onEndpointDown, {
    group: CONNECTIONS,
    help: "And when it is unready, or ill by its health check while another " +
      "one is well.",
  }),
  "endpoint-drain": durationFlag(DEFAULTS.endpointDrainMs, 1, {
    group: CONNECTIONS,
    help: "How long those may go on that are drained.",
  }),
  "idle-timeout": durationFlag(DEFAULTS.idleTimeoutMs, 0, {
    group: CONNECTIONS,
    help: "Reset a TCP connection after so long without a byte. 0: never.",
  }),
  "half-closed-timeout": durationFlag(DEFAULTS.halfClosedTimeoutMs, 0, {
    group: CONNECTIONS,
    help: "The same, of one of which one side has ended. 0: never.",
  }),
  "user-timeout": durationFlag(DEFAULTS.userTimeoutMs, 0, {
    group: CONNECTIONS,
    help: "Give a TCP peer up that acknowledges or takes nothing of what " +
      "waits for it for so long (TCP_USER_TIMEOUT). 0: as the kernel does.",
  }),
  "ejection-failures": countFlag(DEFAULTS.ejection.failures, 0, 1_000, {
    group: CONNECTIONS,
    help: "Dials that fail in a row before an endpoint is left out. 0: it " +
      "never is.",
  }),
  "ejection-time": durationFlag(DEFAULTS.ejection.timeMs, 1, {
    group: CONNECTIONS,
    help: "And for how long it is.",
  }),
} as const;

/** What they say. */
export function connectionDefaults(
  values: FlagValues<typeof CONNECTION_FLAGS>,
): ConnectionDefaults {
  return {
    onEndpointRemoved: values["on-endpoint-removed"],
    onEndpointDown: values["on-endpoint-down"],
    endpointDrainMs: values["endpoint-drain"],
    idleTimeoutMs: values["idle-timeout"],
    halfClosedTimeoutMs: values["half-closed-timeout"],
    userTimeoutMs: values["user-timeout"],
    ejection: {
      failures: values["ejection-failures"],
      timeMs: values["ejection-time"],
    },
  };
}
