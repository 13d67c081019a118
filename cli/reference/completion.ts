/**
 * `tunnel completion`: a script that teaches a shell to complete words; that of fish,
 * which takes each line that a command prints as one literal word, is made here.
 *
 * @module
 */

import { UsageError } from "../flags/usage_error.ts";
import {
  type Command,
  defineCommand,
  type ListedCommand,
} from "../program/command.ts";
import { bashScript, zshScript } from "./case_scripts.ts";
import {
  type CommandWords,
  commandWords,
  type WordOffer,
} from "./command_words.ts";

const SCRIPTS: ReadonlyMap<
  string,
  (commands: readonly CommandWords[]) => string
> = new Map([
  ["bash", bashScript],
  ["zsh", zshScript],
  ["fish", fishScript],
]);

/** @param commands Handed in: they hold this one too. */
export function completionCommand(
  commands: () => Promise<readonly ListedCommand[]>,
): Command {
  return defineCommand({
    name: "completion",
    operands: "bash|zsh|fish [flags]",
    about: [
      "Commands, flags, their values and files are completed from the tables " +
      "of this version; nodes, services and connections are asked for where " +
      "they run, which is quick and silent when no program answers.",
    ],
    examples: [
      "tunnel completion bash >/etc/bash_completion.d/tunnel",
      "tunnel completion zsh >/usr/local/share/zsh/site-functions/_tunnel",
      "tunnel completion fish >~/.config/fish/completions/tunnel.fish",
    ],
    rights: "look",
    flags: {},
    async run({ operands: [shell = "", ...others] }, { print }) {
      const script = SCRIPTS.get(shell);
      const wanted = [...SCRIPTS.keys()].join(", ");
      if (script === undefined || others.length > 0) {
        throw new UsageError(
          `Cannot complete ${shell === "" ? "for no shell" : `"${shell}"`}: ` +
            `wanted one of ${wanted}, as in tunnel completion bash`,
        );
      }
      print(script(commandWords(await commands())));
    },
  });
}

export function fishScript(commands: readonly CommandWords[]): string {
  return `# Completion of tunnel for fish; made by "tunnel completion fish".

function __tunnel_count
    set -l words (commandline -opc)
    test (count $words) -eq $argv[1]
end

function __tunnel_in
    set -l words (commandline -opc)
    test (count $words) -ge (math (count $argv) + 1); or return 1
    for at in (seq (count $argv))
        test "$words[$(math $at + 1)]" = "$argv[$at]"; or return 1
    end
end

function __tunnel_names
    set -l words (commandline -opc)
    command $words[1] complete-names $argv[1] 2>/dev/null
end

complete -c tunnel -e
complete -c tunnel -f
${commands.flatMap(commandLines).join("\n")}
`;
}

function commandLines(command: CommandWords): readonly string[] {
  const { name, summary, verbs, operand, flags } = command;
  const within = `-n ${quoted(`__tunnel_in ${name}`)}`;
  const atVerb = quoted(`__tunnel_in ${name}; and __tunnel_count 2`);
  return [
    `complete -c tunnel -n '__tunnel_count 1' -a ${quoted(name)} -d ${
      quoted(summary)
    }`,
    ...verbs.map(({ name: verb }) =>
      `complete -c tunnel -n ${atVerb} -a ${quoted(verb)}`
    ),
    ...verbs.flatMap(({ name: verb, operand }) =>
      operandLine(`-n ${quoted(`__tunnel_in ${name} ${verb}`)}`, operand)
    ),
    ...operandLine(within, operand),
    ...flags.map(({ name, short, help, value }) =>
      [
        "complete -c tunnel",
        within,
        name.length === 1 ? `-s ${name}` : `-l ${name}`,
        ...short === undefined ? [] : [`-s ${short}`],
        ...valueWords(value),
        `-d ${quoted(help)}`,
      ].join(" ")
    ),
  ];
}

function operandLine(condition: string, offer: WordOffer): readonly string[] {
  if (offer.kind === "none" || offer.kind === "anything") return [];
  const words = valueWords(offer).filter((word) => word !== "-x");
  return [`complete -c tunnel ${condition} ${words.join(" ")}`];
}

function valueWords(offer: WordOffer): readonly string[] {
  switch (offer.kind) {
    case "none":
      return [];
    case "anything":
      return ["-x"];
    case "choices":
      return ["-x", `-a ${quoted(offer.choices.join(" "))}`];
    case "files":
      return ["-r", "-F"];
    case "directories":
      return ["-x", "-a '(__fish_complete_directories)'"];
    case "nodes":
    case "services":
    case "connections":
      return ["-x", `-a '(__tunnel_names ${offer.kind})'`];
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
