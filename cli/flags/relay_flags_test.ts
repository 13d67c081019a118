import { assertEquals, assertThrows } from "@std/assert";
import { UsageError } from "./usage_error.ts";
import { AGENT_FLAGS } from "../agent/flags.ts";
import { agentOptions } from "../agent/options.ts";
import { readFlags } from "./read_flags.ts";
import { words } from "../../tests/support/program/command_line.ts";

const PAIR = ["--ca-cert=ca", "--agent-cert=a", "--agent-key=b"];

function relay(...argv: readonly string[]) {
  const reading = readFlags("agent", AGENT_FLAGS, words(argv));
  return agentOptions(reading, () => "id", "/no/state").relay;
}

Deno.test("a relay listens on loopback, at both places or at one", () => {
  assertEquals(relay(...PAIR), undefined);
  assertEquals(
    relay(...PAIR, "--xds-listen=127.0.0.1:15010", "--connect-listen=[::1]:0"),
    {
      xds: { hostname: "127.0.0.1", port: 15_010 },
      connect: { hostname: "::1", port: 0 },
    },
  );
  assertEquals(relay(...PAIR, "--connect-listen=127.9.9.9:1"), {
    connect: { hostname: "127.9.9.9", port: 1 },
  });
});

Deno.test("a relay that others would reach, or without an identity, is refused", () => {
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [argv: readonly string[], says: string])[] = [
    [[...PAIR, "--xds-listen=0.0.0.0:1"],           'Cannot use --xds-listen: saw "0.0.0.0:1", wanted an add'],
    [[...PAIR, "--xds-listen=192.0.2.7:1"],         'Cannot use --xds-listen: saw "192.0.2.7:1", wanted an add'],
    [[...PAIR, "--connect-listen=[::]:1"],          'Cannot use --connect-listen: saw "[::]:1", wanted an add'],
    [[...PAIR, "--connect-listen=localhost:1"],     'Cannot use --connect-listen: saw "localhost:1", wanted an add'],
    [[...PAIR, "--connect-listen=127.0.0.1"],       'Cannot use --connect-listen: saw "127.0.0.1", wanted HOST:PORT'],
    [["--ca-cert=ca", "--xds-listen=127.0.0.1:1"],     "Cannot use --xds-listen without an identity of this node"],
    [["--ca-cert=ca", "--connect-listen=127.0.0.1:1"], "Cannot use --connect-listen without an identity of this node"],
  ];
  for (const [argv, says] of cases) {
    const { message } = assertThrows(() => relay(...argv), UsageError);
    assertEquals(message.slice(0, says.length), says);
  }
});
