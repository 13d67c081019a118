/**
 * Completion for fish, which takes each line that a command prints as one
 * literal word.
 *
 * @module
 */

import type { CommandWords, WordOffer } from "./command_words.ts";

/** See the module description. */
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
