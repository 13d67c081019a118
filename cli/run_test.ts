import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { allCommands, COMMANDS } from "./commands.ts";
import { ExitCode } from "./program/exit_codes.ts";
import { HELP_COLUMNS } from "./flags/help_text.ts";
import { run } from "./run.ts";
import { type Ran, ran, words } from "../tests/support/program/command_line.ts";

function tunnel(...argv: string[]): Promise<Ran> {
  return ran(run, argv);
}

function tunnelWith(
  environment: Readonly<Record<string, string>>,
  ...argv: string[]
): Promise<Ran> {
  return ran(run, argv, words(argv, environment));
}

for (const name of ["", ...Object.keys(COMMANDS)]) {
  Deno.test(`tunnel help ${name} fits on 80 columns`, async () => {
    const { code, output } = await tunnel("help", ...(name ? [name] : []));
    assertEquals(code, ExitCode.OK);
    assertMatch(output, /^Usage: tunnel /);
    for (const line of output.split("\n")) {
      assertEquals(line.length <= HELP_COLUMNS, true, line);
      assertEquals(line, line.trimEnd());
    }
    // A flag that no heading was said for stands under an empty one.
    assertEquals(output.split("\n").includes(":"), false);
  });
}

for (const name of Object.keys(COMMANDS)) {
  Deno.test(`tunnel ${name} --help shows the page of tunnel help ${name}`, async () => {
    const page = await tunnel("help", name);
    assertEquals(await tunnel(name, "--help"), page);
    assertEquals(await tunnel(name, "--bad-flag", "-h"), page);
  });

  Deno.test(`tunnel ${name} answers an unknown flag with exit code 2`, async () => {
    const { code, output, errors } = await tunnel(name, "--hlep");
    assertEquals(code, ExitCode.USAGE);
    assertEquals(output, "");
    assertEquals(
      errors,
      `tunnel ${name}: Unknown flag --hlep; did you mean --help? ` +
        `(tunnel help ${name} lists all flags) [TUN101]\n`,
    );
  });
}

Deno.test("tunnel alone lists the commands", async () => {
  const { code, output } = await tunnel();
  assertEquals(code, ExitCode.OK);
  for (const { name, isHidden } of await allCommands()) {
    // Two blanks behind the longest, too.
    assertEquals(output.includes(`\n  ${name}  `), !isHidden, name);
  }
  assertEquals((await tunnel("--help")).output, output);
});

Deno.test("an unknown command is answered with the nearest", async () => {
  const { code, errors } = await tunnel("verison");
  assertEquals(code, ExitCode.USAGE);
  assertEquals(
    errors,
    'tunnel: Unknown command "verison"; did you mean version? ' +
      "(tunnel help lists all) [TUN101]\n",
  );
  assertEquals((await tunnel("constructor")).code, ExitCode.USAGE);
  assertEquals((await tunnel("help", "constructor")).code, ExitCode.USAGE);
});

Deno.test("tunnel version prints semantic versions for people and machines", async () => {
  assertMatch((await tunnel("version")).output, /^tunnel \d+\.\d+\.\d+\ndeno /);
  const { output } = await tunnel("version", "-o", "json");
  assertEquals(JSON.parse(output).deno, Deno.version.deno);
  assertEquals(
    (await tunnel("--version")).output,
    (await tunnel("version")).output,
  );
});

Deno.test("every command prints the version by --version, and ends", async () => {
  const { output: text } = await tunnel("version");
  const { output: json } = await tunnel("version", "--output=json");
  for (const name of ["proxy", "server", "agent", "dial", "token"]) {
    for (const word of ["--version", "-version", "--version=true"]) {
      const outcome = await tunnel(name, "-v=4", word);
      assertEquals(outcome, { code: ExitCode.OK, output: text, errors: "" });
    }
    assertEquals((await tunnel(name, "--version=raw")).output, json);
    const { code, errors } = await tunnel(name, "--version=2");
    assertEquals(code, ExitCode.USAGE);
    assertStringIncludes(errors, "wanted true, false or raw");
  }
  const refused = await tunnel("proxy", "--version=false");
  assertStringIncludes(refused.errors, "no flag says where services come from");
  const behind = await tunnel("version", "--", "--version");
  assertStringIncludes(behind.errors, 'Unexpected word "--version"');
  const variable = await tunnelWith({ TUNNEL_VERSION: "1.2" }, "proxy");
  assertStringIncludes(
    variable.errors,
    "no flag says where services come from",
  );
  assertEquals((await tunnel("-version")).output, text);
});

Deno.test("tunnel proxy --check ends with 0 or 1, and says what is wrong", async () => {
  const path = await Deno.makeTempFile({ suffix: ".yaml" });
  const check = async (text: string) => {
    await Deno.writeTextFile(path, text);
    return await tunnel("proxy", `-config=${path}`, "-check");
  };
  try {
    const web = "services:\n- {name: web, ports: [{port: 80}]}\n";
    assertEquals(await check(web), {
      code: ExitCode.OK,
      output: "file: 1 service, 0 endpoints\n" +
        "note: default/web has no endpoint\nok\n",
      errors: "",
    });
    const { code, output, errors } = await check("services: 7\n");
    assertEquals([code, errors], [ExitCode.FAILURE, ""]);
    assertMatch(output, /^wrong: file: Cannot use .*\.yaml: .*\n1 problem\n$/m);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("no refusal repeats a token that stands in the wrong place", async () => {
  const token = `tnl1.${"P".repeat(43)}.abcdefg234.${"s".repeat(22)}`;
  const cut = token.slice(2);
  for (const text of [token, `${token},${token}`, cut, `x${token}`]) {
    for (
      const argv of [
        [text],
        ["help", text],
        ["agent", text],
        ["server", text],
        ["dial", text],
        ["forward", text],
        ["agent", "--server", text],
        ["agent", "--node", text],
        ["agent", `--${text}`],
        ["token", text],
        ["token", "list", text],
        ["token", "create", "--node", text],
        ["node", "approve", text, "--identifiers", text],
      ]
    ) {
      const { code, errors } = await tunnel(...argv);
      assertEquals(code, ExitCode.USAGE, errors);
      assertStringIncludes(errors, "tnl1.…");
      assertEquals(/s{4}|P{4}/.test(errors), false, errors);
    }
  }
});

Deno.test("a word that belongs to no flag is refused", async () => {
  const { code, errors } = await tunnel("version", "now");
  assertEquals(code, ExitCode.USAGE);
  assertEquals(
    errors,
    'tunnel version: Unexpected word "now"; flags begin with -- [TUN101]\n',
  );
});

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  TUNNEL_SOCKETS: ["platform", "thread", "ring"],
  TUNNEL_TLS: ["platform", "openssl"],
};

for (const [variable, choices] of Object.entries(CHOICES)) {
  Deno.test(`a $${variable} that there is not is one line and exit code 2, at any command`, async () => {
    const shouted = choices[0]!.toUpperCase();
    for (const name of ["version", "server", "agent", "dial", "forward"]) {
      assertEquals(await tunnelWith({ [variable]: shouted }, name), {
        code: ExitCode.USAGE,
        output: "",
        errors:
          `tunnel: Cannot use $${variable}: saw "${shouted}", wanted one of ` +
          `${choices.join(", ")} [TUN101]\n`,
      });
    }
    for (const choice of ["", ...choices]) {
      const { code } = await tunnelWith({ [variable]: choice }, "version");
      assertEquals(code, ExitCode.OK, choice);
    }
  });
}
