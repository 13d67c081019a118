/** The units of systemd say what the program understands. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { AGENT_FLAGS } from "../../cli/agent/flags.ts";
import type { Flag } from "../../cli/flags/flag.ts";
import { PROXY_FLAGS } from "../../cli/proxy/flags.ts";
import { SERVER_FLAGS } from "../../cli/server/flags.ts";

const UNITS = new URL("../../deploy/systemd/", import.meta.url);

const TABLES = [
  ["server", SERVER_FLAGS, "graceful-shutdown-timeout"],
  ["agent", AGENT_FLAGS, "drain-timeout"],
  ["proxy", PROXY_FLAGS, "drain-timeout"],
] as const;

for (const [command, table, timeout] of TABLES) {
  Deno.test(`the unit of the ${command} starts it, and lets it end`, () => {
    const unit = Deno.readTextFileSync(
      new URL(`tunnel-${command}.service`, UNITS),
    );
    const words = /^ExecStart=\/usr\/bin\/tunnel (.*)$/m.exec(unit)![1]!
      .split(" ");
    assertEquals(words.shift(), command);
    const flags = words.map((word) => /^--([a-z-]+)=(.+)$/.exec(word)!);
    for (const [, name] of flags) assert(Object.hasOwn(table, name!), name);
    const drainMs = new Map<string, Flag<unknown>>(Object.entries(table))
      .get(timeout)!.fallback;
    const stop = /^TimeoutStopSec=(\d+)s$/m.exec(unit)![1];
    assert(Number(drainMs) < Number(stop) * 1000, "it would be killed first");
    assertMatch(unit, /^Type=notify$/m);
    assertMatch(unit, /^FileDescriptorStoreMax=[1-9]\d*$/m);
  });
}
