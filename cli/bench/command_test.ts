import { assertEquals, assertMatch } from "@std/assert";
import { bench } from "../../tests/support/rigs/bench_command.ts";
import { ExitCode } from "../program/exit_codes.ts";

const SERVER = "--server=unix:/nowhere/f.sock";

Deno.test("bench refuses what makes no sense, in one line", async () => {
  const lines: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /--server is not given/],
    [[SERVER, "node7"], /Unexpected word "node7"/],
    [[SERVER, "--connections=65"], /from 1 to 64/],
    [[SERVER, "--duration=2m"], /wanted 1m0s at most/],
    [[SERVER, "--measure=ping"], /names out of rtt, down, up, new/],
    [[SERVER, "--target=7007"], /wanted HOST:PORT/],
    [["--serve=7007", SERVER], /--server together with --serve/],
    [["--serve=70070"], /wanted 1 to 65535/],
    [["--serve=here"], /Cannot use --serve: saw "here"/],
  ];
  for (const [flags, wanted] of lines) {
    const { code, output, errors } = await bench(flags);
    assertEquals([code, output], [ExitCode.USAGE, ""], flags.join(" "));
    assertMatch(errors, wanted);
    assertMatch(errors, /^tunnel bench: [^\n]+\n$/);
  }
});

Deno.test("bench says when there is no server, as a failure", async () => {
  const { code, errors } = await bench([SERVER]);
  assertEquals(code, ExitCode.FAILURE);
  assertMatch(errors, /^tunnel bench: Cannot connect to unix:[^\n]+\n$/);
});
