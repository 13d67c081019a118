import { assertEquals, assertMatch } from "@std/assert";
import { defineCommand } from "./command.ts";
import { CommandFailure, ExitCode } from "./exit_codes.ts";
import { LOG_FLAGS } from "../flags/program_flags.ts";
import { type Ran, ran } from "../../tests/support/program/command_line.ts";

function failWith(error: unknown, ...argv: string[]): Promise<Ran> {
  const command = defineCommand({
    name: "try",
    operands: "",
    about: [],
    examples: [],
    rights: "network",
    flags: LOG_FLAGS,
    run: () => Promise.reject(error),
  });
  return ran(command.run, argv);
}

Deno.test("a failure is one line and exit code 1", async () => {
  const failure = await failWith(new Error("Cannot listen:\n  port in use"));
  assertEquals(failure, {
    code: ExitCode.FAILURE,
    output: "",
    errors: "tunnel try: Cannot listen: port in use [TUN119]\n",
  });
});

Deno.test("a missing right is a fault of ours, whatever failed by it", async () => {
  const words =
    'Requires net access to "a:1", run again with the --allow-net flag';
  const cause = new Deno.errors.NotCapable(words);
  for (
    const error of [
      cause,
      new CommandFailure(1, `Cannot ask: ${words}`, cause, "TUN802"),
    ]
  ) {
    const { code, errors } = await failWith(error);
    assertEquals(code, ExitCode.FAILURE);
    assertMatch(errors, / \[TUN907\]\n$/);
  }
});

Deno.test("what a peer says of a failure does nothing to the terminal", async () => {
  const said = `refused\u001b]0;owned\u0007\u202e${"x".repeat(60_000)}`;
  const { errors } = await failWith(new Error(said));
  assertEquals(/[^\P{Cc}\n]|\p{Cf}/u.test(errors), false);
  assertEquals(errors.length < 5_000, true);
});

Deno.test("the highest levels add the stack of a failure", async () => {
  const { errors } = await failWith(new Error("Cannot listen"), "--v=6");
  assertMatch(
    errors,
    /^tunnel try: Cannot listen \[TUN119\]\nError: Cannot listen\n +at /,
  );
});
