/**
 * How many may connect to a server; the defaults stand in `net/admission`.
 *
 * @module
 */

import {
  type IntakeWish,
  SOURCE_LIMITS_DEFAULT,
} from "../../net/admission/intake_limits.ts";
import { countFlag } from "./flag.ts";
import type { FlagReading } from "./read_flags.ts";

const GROUP = "Limits on peers";
const MOST = 10_000_000;

/** In the order in which the help shows them. */
export const INTAKE_FLAGS = {
  "max-connections": countFlag(0, 0, MOST, {
    group: GROUP,
    help: "Connections on all ports together; one more is refused. 0: seven " +
      "eighths of the open files allowed (ulimit -n), at most 65536.",
  }),
  "max-connections-per-source": countFlag(
    SOURCE_LIMITS_DEFAULT.connections,
    1,
    MOST,
    {
      group: GROUP,
      help: "The same from one address (IPv6: /64). Raise it where a load " +
        "balancer puts its own address in front of more agents.",
    },
  ),
  "max-strangers": countFlag(0, 0, MOST, {
    group: GROUP,
    help:
      "Connections that have not shown who they are, handshakes under way " +
      "included; for one more the one that has waited longest is ended. " +
      "0: half of --max-connections, at most 4096.",
  }),
  "max-strangers-per-source": countFlag(
    SOURCE_LIMITS_DEFAULT.strangers,
    1,
    MOST,
    { group: GROUP, help: "The same from one address (IPv6: /64)." },
  ),
} as const;

/** What was chosen. */
export function intakeWish(
  { values }: Pick<FlagReading<typeof INTAKE_FLAGS>, "values">,
): IntakeWish {
  const connections = values["max-connections"];
  const strangers = values["max-strangers"];
  return {
    ...(connections === 0 ? {} : { connectionsMax: connections }),
    ...(strangers === 0 ? {} : { strangersMax: strangers }),
    sourceConnectionsMax: values["max-connections-per-source"],
    sourceStrangersMax: values["max-strangers-per-source"],
  };
}
