import { assert, assertEquals } from "@std/assert";
import { CODES } from "../../proto/codes/codes.ts";
import { ran } from "../../tests/support/program/command_line.ts";
import { allCommands, COMMANDS } from "../commands.ts";
import { bashScript, zshScript } from "./case_scripts.ts";
import { commandWords } from "./command_words.ts";
import { fishScript } from "./completion.ts";

/** Made by peers, as far as a shell knows. */
const HOSTILE = [
  "node1",
  "node two",
  "$(touch owned)",
  "`touch owned`",
  "node;touch owned",
  "node'quote",
  'node"quote',
  "node*",
];

function has(program: string): boolean {
  try {
    return new Deno.Command(program, { args: ["--version"] }).outputSync()
      .success;
  } catch {
    return false;
  }
}

/**
 * A folder with a script, and a `tunnel` that knows hostile names and prints
 * its own arguments.
 */
async function withStage(
  script: (words: ReturnType<typeof commandWords>) => string,
  run: (
    ask: (program: string, ...args: string[]) => Promise<string>,
    directory: string,
  ) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(
      `${directory}/script`,
      script(commandWords(await allCommands())),
    );
    const names = HOSTILE.map((name) => `${name}\n`).join("");
    await Deno.writeTextFile(`${directory}/names`, names);
    await Deno.writeTextFile(
      `${directory}/tunnel`,
      `#!/bin/sh\nif [ "$1" = complete-names ]; then cat ${directory}/names; ` +
        `else printf '<%s>' "$@"; echo; fi\n`,
      { mode: 0o755 },
    );
    await run(async (program, ...args) => {
      const { stdout, stderr } = await new Deno.Command(program, {
        args,
        cwd: directory,
        clearEnv: true,
        env: {
          PATH: `${directory}:/usr/local/bin:/usr/bin:/bin`,
          HOME: directory,
          TERM: "dumb",
        },
        stdin: "null",
      }).output();
      const decoder = new TextDecoder();
      assertEquals(decoder.decode(stderr), "");
      return decoder.decode(stdout);
    }, directory);
    const made = [...Deno.readDirSync(directory)].map(({ name }) => name);
    assert(!made.includes("owned"), "a name was run");
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

const BASH = `source script
t() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tunnel; }
show() { t "$@"; (IFS='|'; echo "\${COMPREPLY[*]}"); }
`;

Deno.test({
  name: "bash completes commands, verbs, flags, values and names",
  ignore: !has("bash"),
  async fn() {
    await withStage(bashScript, async (ask) => {
      const lines = await ask(
        "bash",
        "-c",
        `${BASH}
show tunnel nod
show tunnel ca r
show tunnel server --mod
show tunnel server --mode = g
show tunnel dial --node nod
show tunnel node revoke node1
show tunnel server --config /et
show tunnel completion z
show tunnel explain TUN10
show tunnel doctor node node1
t tunnel dial --node ''
for name in "\${COMPREPLY[@]}"; do eval "tunnel $name"; done`,
      );
      assertEquals(lines.split("\n"), [
        "node",
        "rotate|retire",
        "--mode",
        "grpc",
        String
          .raw`node1|node\ two|node\;touch\ owned|node\'quote|node\"quote|node\*`,
        "node1",
        "/etc",
        "zsh",
        Object.keys(CODES).filter((code) => code.startsWith("TUN10")).join("|"),
        "node1",
        ...HOSTILE.map((name) => `<${name}>`),
        "",
      ]);
    });
  },
});

Deno.test({
  name: "fish completes commands, verbs, flags, values and names",
  ignore: !has("fish"),
  async fn() {
    await withStage(fishScript, async (ask) => {
      const complete = async (line: string) => {
        const text = await ask(
          "fish",
          "--no-config",
          "-c",
          `source script; complete -C ${JSON.stringify(line)}`,
        );
        return text.trimEnd().split("\n").map((line) => line.split("\t")[0]);
      };
      assertEquals(await complete("tunnel nod"), ["node"]);
      assertEquals(await complete("tunnel ca r"), ["retire", "rotate"]);
      assertEquals(await complete("tunnel server --mode g"), ["grpc"]);
      assertEquals(await complete("tunnel completion z"), ["zsh"]);
      const names = await complete("tunnel dial --node ");
      // It gives the names as they are, and its editor escapes what it inserts.
      assertEquals(new Set(names), new Set(HOSTILE));
    });
  },
});

/** A terminal in which zsh runs, and keys are pressed. */
function zshTerminal(typed: string): string {
  return `
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PROMPT=; autoload -Uz compinit; compinit -D -u; source script; echo re''ady'
zpty -r z out '*ready*'
zpty -n -w z '${typed}'$'\\t'
sleep 0.5
zpty -n -w z $'\\r'
zpty -n -w z $'echo d$((0))ne\\r'
zpty -r z out '*d0ne*'
print -r -- "$out"
zpty -d z`;
}

Deno.test({
  name: "zsh completes commands, verbs, values and names",
  ignore: !has("zsh"),
  async fn() {
    await withStage(zshScript, async (ask, directory) => {
      for (
        const [typed, wanted] of [
          ["tunnel nod", "<node>"],
          ["tunnel ca rotat", "<ca><rotate>"],
          ["tunnel server --mode=http", "<server><--mode=http-connect>"],
          ["tunnel completion fi", "<completion><fish>"],
        ] as const
      ) {
        const shown = await ask("zsh", "-f", "-c", zshTerminal(typed));
        assert(shown.includes(wanted), `${typed}: ${shown}`);
      }
      for (const name of HOSTILE) {
        await Deno.writeTextFile(`${directory}/names`, `${name}\n`);
        const typed = "tunnel dial --node ";
        const shown = await ask("zsh", "-f", "-c", zshTerminal(typed));
        assert(shown.includes(`<dial><--node><${name}>`), shown);
      }
    });
  },
});

Deno.test("the verbs that are completed are those that are known", async () => {
  for (const words of commandWords(await allCommands())) {
    const load = COMMANDS[words.name];
    if (words.verbs.length === 0 || load === undefined) continue;
    const { errors } = await ran((await load()).run, ["no-such-verb"]);
    // What says its verbs, as most do, says these.
    const known = /knows ([a-z, -]+)$/.exec(errors.trim())?.[1]?.split(", ");
    if (known === undefined) continue;
    assertEquals(words.verbs.map(({ name }) => name), known, words.name);
  }
});
