import { assertEquals, assertStringIncludes } from "@std/assert";
import { COMMANDS } from "../commands.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { ran, words } from "../../tests/support/program/command_line.ts";
import { KINDS, serviceFiles, type ServicePlan } from "./units.ts";

/** All that it says. */
async function printed(
  argv: readonly string[],
  variables: Readonly<Record<string, string>> = {},
) {
  const { run } = await COMMANDS["install"]!();
  const { code, output, errors } = await ran(run, argv, words(argv, variables));
  return { code, text: output + errors };
}

const TOKEN = `tnl1.${"a".repeat(43)}.k3vn2xq7ab.${"b".repeat(22)}`;

Deno.test("flags come into the unit, and a token into a file of its own", async () => {
  const { text } = await printed([
    ...[
      "agent",
      "--print",
      "--server=t.example:8091",
      "--config",
      "/etc/a b%.yaml",
    ],
    ...["--drain-timeout=5m", "--join", TOKEN],
  ]);
  assertStringIncludes(
    text,
    "ExecStart=/usr/local/bin/tunnel agent --state-dir=/var/lib/tunnel/agent " +
      `--server=t.example:8091 --config "/etc/a b%%.yaml" --drain-timeout=5m\n` +
      "TimeoutStopSec=310s\n",
  );
  assertStringIncludes(text, "# /etc/tunnel/agent.env\nTUNNEL_JOIN=(hidden)\n");
  assertEquals(text.includes(TOKEN), false);
});

Deno.test("systemd listens where the server would", async () => {
  for (
    const [flags, expected] of [
      [[], undefined],
      [["--agent-port=443"], "[::]:443"],
      [["--agent-bind-address=192.0.2.1"], "192.0.2.1:8091"],
      [["--agent-bind-address=::1"], "[::1]:8091"],
    ] as const
  ) {
    const { text } = await printed(["server", "--print", ...flags]);
    const stream = /ListenStream=\nListenStream=(.*)/.exec(text)?.[1];
    assertEquals(stream, expected);
  }
  // By its name it may have several addresses: the server listens itself.
  const named = ["--agent-bind-address=localhost"];
  const { text } = await printed(["server", "--print", ...named]);
  assertEquals(text.includes(".socket\n"), false);
});

Deno.test("what the program would refuse is refused before anything is written", async () => {
  for (
    const [argv, words] of [
      [[], "wanted tunnel install server|agent|proxy"],
      [["angel"], 'install "angel"'],
      [["agent", "--sever=x"], "did you mean --server?"],
      [["agent", "--server=x:1", "word"], 'Unexpected word "word"'],
      [["server", "--state-dir=/x"], "a service has /var/lib/tunnel/server"],
    ] as const
  ) {
    const { code, text } = await printed([...argv, "--print"]);
    assertEquals(code, ExitCode.USAGE);
    assertStringIncludes(text, words);
  }
});

Deno.test("units of a package stay as they are", () => {
  for (const kind of KINDS) {
    const plan: ServicePlan = {
      ...{ kind, program: "/usr/bin/tunnel", isPackaged: true, words: [] },
      secrets: new Map(),
    };
    assertEquals(serviceFiles(plan), []);
    const words = ["--v=4", "$HOME"];
    const [file, ...others] = serviceFiles({ ...plan, words });
    assertEquals(others, []);
    assertStringIncludes(
      file!.text,
      `ExecStart=\nExecStart=/usr/bin/tunnel ${kind} `,
    );
    assertStringIncludes(file!.text, ' --v=4 "$$HOME"\n');
  }
});
