/**
 * What flags of `tunnel agent` demand of each other, for who checks them without
 * the machine that they are for.
 *
 * @module
 */

import { withSomeGroup } from "../flags/flags_alone.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import { relayOptions } from "../flags/relay_flags.ts";
import type { FlagRule } from "../program/command.ts";
import { announcedServices } from "./announce.ts";
import type { AGENT_FLAGS } from "./flags.ts";
import { agentOptions, rulesOf } from "./options.ts";

/** In no message. */
const SOME_DIRECTORY = "state";
const SOME_NAME = "node";

/** Some are parts of the last one, which says one thing at a time. */
export function agentFlagRules(
  reading: FlagReading<typeof AGENT_FLAGS>,
): readonly FlagRule[] {
  const { values } = reading;
  // Its machine has a host name that will do.
  const node = values["node"] || SOME_NAME;
  const alone = { ...withSomeGroup(values), node };
  // Without a token that can be looked at the node is taken to have joined.
  const hasJoined = () => values["join"] === "" || values["join"] === "-";
  return [
    () => rulesOf(values),
    () => announcedServices(values["announce"]),
    () => relayOptions(values),
    () =>
      agentOptions(
        { ...reading, values: alone },
        () => SOME_NAME,
        SOME_DIRECTORY,
        undefined,
        hasJoined,
      ),
  ];
}
