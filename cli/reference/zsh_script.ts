/**
 * Completion for zsh, which quotes what it is given by itself.
 *
 * @module
 */

import type { CommandWords, WordOffer } from "./command_words.ts";
import { operandCases, valueCases } from "./shell_cases.ts";

/** See the module description. */
export function zshScript(commands: readonly CommandWords[]): string {
  const described = commands.map(({ name, summary }) => pair(name, summary));
  return `${HEAD}_tunnel_commands() {
  local -a commands
  commands=(
${described.map((word) => `    ${word}`).join("\n")}
  )
  _describe command commands
}

_tunnel_verbs() {
    case "$1" in
${
    commands.filter(({ verbs }) => verbs.length > 0).map(({ name, verbs }) =>
      `      ${name}) compadd -- ${verbs.map(({ name }) => name).join(" ")} ;;`
    ).join("\n")
  }
      *) _tunnel_operand "$1" "" ;;
    esac
}

_tunnel_flags() {
  local -a flags
  case "$1" in
${commands.map(flagsCase).join("\n")}
  esac
  _describe flag flags
}

_tunnel_value() {
  case "$1 $2" in
${commands.flatMap((words) => valueCases(words, offerOf)).join("\n")}
    *) return 1 ;;
  esac
  return 0
}

_tunnel_operand() {
  case "$1 $2" in
${commands.flatMap((words) => operandCases(words, offerOf)).join("\n")}
  esac
}

${TAIL}`;
}

const HEAD = `#compdef tunnel
# Completion of tunnel for zsh; made by "tunnel completion zsh".

# Names come from peers: an array is given to compadd, which quotes each.
_tunnel_names() {
  local -a names
  names=("\${(@f)$("\${words[1]}" complete-names "$1" 2>/dev/null)}")
  names=("\${(@)names:#}")
  compadd -a names
}

`;

const TAIL = `_tunnel() {
  if ((CURRENT == 2)); then
    _tunnel_commands
    return
  fi
  local command=\${words[2]} current=\${words[CURRENT]}
  local previous=\${words[CURRENT-1]}
  if [[ $current == --*=* ]]; then
    compset -P '*='
    _tunnel_value "$command" "\${current%%=*}"
    return
  fi
  if ((CURRENT > 3)) && [[ $previous == -* ]]; then
    _tunnel_value "$command" "$previous" && return
  fi
  if [[ $current == -* ]]; then
    _tunnel_flags "$command"
  elif ((CURRENT == 3)); then
    _tunnel_verbs "$command"
  else
    _tunnel_operand "$command" "\${words[3]}"
  fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _tunnel "$@"
else
  compdef _tunnel tunnel
fi
`;

/** `name:description`, as _describe reads it, quoted for the shell. */
function pair(name: string, description: string): string {
  return quoted(`${name.replaceAll(":", "\\:")}:${description}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function flagsCase({ name, flags }: CommandWords): string {
  const words = flags.map((flag) => pair(`--${flag.name}`, flag.help));
  const lines = [...words, pair("--help", "Show the help")]
    .map((word) => `      ${word}`);
  return `    ${name}) flags=(\n${lines.join("\n")}\n    ) ;;`;
}

function offerOf(offer: WordOffer): string {
  switch (offer.kind) {
    case "none":
    case "anything":
      return "_message 'a value'";
    case "choices":
      return `compadd -- ${offer.choices.map(quoted).join(" ")}`;
    case "files":
      return "_files";
    case "directories":
      return "_files -/";
    case "nodes":
    case "services":
    case "connections":
      return `_tunnel_names ${offer.kind}`;
  }
}
