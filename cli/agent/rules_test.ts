import { assertEquals, assertThrows } from "@std/assert";
import { subjectOf } from "../../policy/subject.ts";
import { UsageError } from "../flags/usage_error.ts";
import { AGENT_FLAGS } from "./flags.ts";
import { agentOptions } from "./options.ts";
import { readFlags } from "../flags/read_flags.ts";
import { words } from "../../tests/support/program/command_line.ts";

/** What an agent with these flags says to targets, `-` for refused. */
function evaluated(argv: readonly string[], ...targets: readonly string[]) {
  const reading = readFlags(
    "agent",
    AGENT_FLAGS,
    words(["--ca-cert=ca", ...argv]),
  );
  const { dials } = agentOptions(reading, () => "id", "/no/state");
  const rules = dials.rules?.();
  if (rules === undefined) return "no rules";
  return targets.map((target) => {
    const [protocol = "", address = ""] = target.split(" ");
    const { isAllowed, rule } = rules.evaluateUnresolved(
      subjectOf({ protocol, address }),
    );
    return `${isAllowed ? "+" : "-"}${rule}`;
  });
}

Deno.test("without flags there are no rules, as Konnectivity's agents have none", () => {
  assertEquals(evaluated([]), "no rules");
  assertEquals(evaluated(["--allow-preset=all"]), "no rules");
});

Deno.test("rules replace the default, and a preset adds to them", () => {
  const targets = ["tcp 10.0.0.1:443", "tcp 127.0.0.1:80", "udp 10.0.0.1:53"];
  assertEquals(evaluated(["--allow=tcp:10.0.0.0/8:80,443"], ...targets), [
    "+--allow tcp:10.0.0.0/8:80,443",
    "-",
    "-",
  ]);
  assertEquals(
    evaluated(
      ["--allow=tcp:10.0.0.0/8:443", "--allow-preset=loopback"],
      ...targets,
    ),
    ["+--allow tcp:10.0.0.0/8:443", "+--allow-preset=loopback", "-"],
  );
  assertEquals(evaluated(["--allow-preset=all-tcp"], ...targets), [
    "+--allow-preset=all-tcp",
    "+--allow-preset=all-tcp",
    "-",
  ]);
  assertEquals(evaluated(["--deny=udp:*:53"], ...targets), [
    "+--allow-preset=all",
    "+--allow-preset=all",
    "---deny udp:*:53",
  ]);
});

Deno.test("one text may hold several rules, and their ports commas", () => {
  assertEquals(
    evaluated(
      ["--allow=tcp:10.0.0.1:80,443, UDP:*:53", "--allow", "unix:/run/a,b"],
      ...["tcp 10.0.0.1:443", "udp 10.0.0.9:53", "unix /run/a,b"],
    ),
    [
      "+--allow tcp:10.0.0.1:80,443",
      "+--allow UDP:*:53",
      "+--allow unix:/run/a,b",
    ],
  );
});

Deno.test("a wrong rule is a usage error with the rule, its column and a remedy", () => {
  assertThrows(
    () => evaluated(["--allow=tcp:10.0.0.1:80,udp:fd00::1:53"]),
    UsageError,
    'Cannot use --allow: the rule "udp:fd00::1:53", column 5: saw more than ' +
      "one colon after the protocol; write an IPv6 address in brackets",
  );
});
