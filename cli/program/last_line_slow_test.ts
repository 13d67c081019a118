import { assertEquals, assertMatch } from "@std/assert";
import { runToEnd } from "../../tests/support/program/run.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** What a process says on stderr, and how it ends. */
async function outcomeOf(program: string): Promise<[number, string]> {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", `--config=${ROOT}deno.json`, program],
    env: { NO_COLOR: "1" },
  }).output();
  return [code, new TextDecoder().decode(stderr)];
}

const BEGIN = `
  import { endWithOneLine, spokenLog } from "${ROOT}cli/program/process_context.ts";
  import { surviveInternalErrors } from "${ROOT}platform/log/internal_error_log.ts";
  endWithOneLine();
  const say = (text) => Deno.stderr.writeSync(new TextEncoder().encode(text));
`;

/** What nobody catches, however it is thrown. */
const SLIPS: readonly string[] = [
  `throw new Error("a slip\\nof two lines");`,
  `setTimeout(() => { throw new Error("a slip\\nof two lines"); });
   await new Promise(() => setTimeout(() => {}, 60_000));`,
  `Promise.reject(new Error("a slip\\nof two lines"));
   await new Promise(() => setTimeout(() => {}, 60_000));`,
];

for (const slip of SLIPS) {
  Deno.test(`a short command ends with one line: ${slip.slice(0, 20)}`, async () => {
    const [code, said] = await outcomeOf(`${BEGIN} ${slip}`);
    assertEquals(code, 1);
    assertMatch(
      said,
      /^tunnel: internal error, please report it: Error: a slip of two lines \(at [^\n]+\)\n$/,
    );
  });
}

Deno.test("a command that is to live goes on, and says so", async () => {
  const [code, said] = await outcomeOf(`${BEGIN}
    using _net = surviveInternalErrors(spokenLog("forward", { printError: say }));
    setTimeout(() => { throw new Error("a slip"); });
    Promise.reject(null);
    await new Promise((resolve) => setTimeout(resolve, 50));
    say("still here\\n");
  `);
  assertEquals(code, 0);
  assertMatch(
    said,
    /^tunnel forward: internal error.*a slip\nat [^\n]+\n/m,
  );
  assertMatch(said, /a value that is no error was thrown: null/);
  assertMatch(said, /\nstill here\n$/);
});

/** Runs the program from source, behind `shell`, in which `$@` are its words. */
async function runMain(
  program: string,
  shell: string,
  ...words: readonly string[]
): Promise<[number, string]> {
  const config = `--config=${ROOT}deno.json`;
  const command = [Deno.execPath(), "eval", config, program, ...words];
  const { code, stderr } = await runToEnd(
    ["sh", "-c", shell, "sh", ...command],
    {
      env: { NO_COLOR: "1" },
    },
  );
  return [code, stderr];
}

const MAIN = `import { main } from "${ROOT}main.ts"; await main();`;

for (const words of [["help"], ["help", "server", "--all"], ["status", "-h"]]) {
  Deno.test(`a full disk behind standard output is named: ${words.join(" ")}`, {
    ignore: Deno.build.os !== "linux",
  }, async () => {
    const [code, said] = await runMain(MAIN, '"$@" >/dev/full', ...words);
    assertEquals(code, 1);
    assertMatch(
      said,
      /^tunnel[a-z ]*: Cannot write to standard output: [^\n]+ \[TUN119\]\n$/,
    );
  });
}

Deno.test(
  "SIGHUP before a command is loaded does not end what reads files again",
  {
    ignore: Deno.build.os === "windows",
  },
  async () => {
    const hungUp = `import { main } from "${ROOT}main.ts";
    const ended = main(); Deno.kill(Deno.pid, "SIGHUP"); await ended;`;
    const shell = 'unset _TUNNEL_FILE; "$@"';
    assertEquals(await runMain(hungUp, shell, "server", "--version"), [0, ""]);
    assertEquals((await runMain(hungUp, shell, "status", "--version"))[0], 129);
  },
);
