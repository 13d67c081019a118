/**
 * What flags of `tunnel server` demand of each other, for who checks them without
 * the machine that they are for.
 *
 * @module
 */

import { SOME_FILES, withSomeGroup } from "../flags/flags_alone.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import type { FlagRule } from "../program/command.ts";
import { adminRemoteOptions } from "./admin_remote.ts";
import { discoveryConfig } from "./discovery.ts";
import type { SERVER_FLAGS } from "./flags.ts";
import { kubeletOptions } from "./kubelet.ts";
import { serverKubernetes } from "./kubernetes.ts";
import { serverOptions, tlsLimits } from "./options.ts";
import { membershipOptions } from "./peers.ts";

/** In no message. */
const SOME_DIRECTORY = "state";
const SOME_ID = "server";

/** Of ports with a rule of their own. */
const OF_OTHER_PORTS = /^(?:kubelet|admin-remote|admin-client)-/;

/** The last one says one thing at a time: as little as can be is left to it. */
export function serverFlagRules(
  reading: FlagReading<typeof SERVER_FLAGS>,
): readonly FlagRule[] {
  const { values, given } = reading;
  // Which suites there are is known where OpenSSL is.
  const alone = { ...withSomeGroup(values), "cipher-suites": [] };
  return [
    () =>
      tlsLimits(values["tls-min-version"], values["cipher-suites"], () => true),
    () => serverKubernetes(values, values["server-id"] || SOME_ID),
    () => kubeletOptions(reading),
    () => membershipOptions(values),
    () => adminRemoteOptions(reading),
    () => discoveryConfig(reading, SOME_FILES),
    () =>
      serverOptions(
        {
          ...reading,
          values: alone,
          given: new Set(
            [...given].filter((name) => !OF_OTHER_PORTS.test(name)),
          ),
        },
        SOME_DIRECTORY,
        SOME_FILES,
        () => SOME_ID,
      ),
  ];
}
