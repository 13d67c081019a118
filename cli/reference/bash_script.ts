/**
 * Completion for bash. What is asked for at run time is compared and quoted
 * without ever being expanded: a peer may have made it.
 *
 * @module
 */

import type { CommandWords, WordOffer } from "./command_words.ts";
import { operandCases, valueCases } from "./shell_cases.ts";

/** See the module description. */
export function bashScript(commands: readonly CommandWords[]): string {
  const names = commands.map(({ name }) => name).join(" ");
  return `${HEAD}_tunnel_commands() {
  _tunnel_words "${names}"
}

_tunnel_flags() {
  case "$1" in
${commands.map(flagsCase).join("\n")}
  esac
}

_tunnel_value() {
  case "$1 $2" in
${commands.flatMap((words) => valueCases(words, offerOf)).join("\n")}
  *) return 1 ;;
  esac
}

_tunnel_operand() {
  case "$1 $2" in
${commands.flatMap((words) => operandCases(words, offerOf)).join("\n")}
  esac
}

_tunnel_verbs() {
  case "$1" in
${
    commands.filter(({ verbs }) => verbs.length > 0).map(({ name, verbs }) =>
      `  ${name}) _tunnel_words "${verbs.map(({ name }) => name).join(" ")}" ;;`
    ).join("\n")
  }
  *) _tunnel_operand "$1" "" ;;
  esac
}

${TAIL}`;
}

const HEAD = `# Completion of tunnel for bash; made by "tunnel completion bash".

_tunnel_words() {
  COMPREPLY+=($(compgen -W "$1" -- "$_tunnel_cur"))
}

# Names come from peers: none is expanded, all are quoted.
_tunnel_names() {
  local name
  while IFS= read -r name; do
    if [[ $name == "$_tunnel_cur"* ]]; then
      printf -v name %q "$name"
      # Readline replaces only what stands behind the last colon.
      if [[ $_tunnel_cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        name=\${name#"\${_tunnel_cur%"\${_tunnel_cur##*:}"}"}
      fi
      COMPREPLY+=("$name")
    fi
  done < <("\${COMP_WORDS[0]}" complete-names "$1" 2>/dev/null)
}

_tunnel_paths() {
  compopt -o filenames 2>/dev/null
  local path
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(
    compgen "$1" -- "$_tunnel_cur"
  )
}

`;

const TAIL = `_tunnel() {
  local _tunnel_cur=\${COMP_WORDS[COMP_CWORD]} flag= previous
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _tunnel_commands
    return
  fi
  # The line is broken at "=": --flag=value is three words.
  previous=\${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $_tunnel_cur == = ]]; then
    flag=$previous _tunnel_cur=
  elif [[ $previous == = ]]; then
    flag=\${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $previous == -* ]]; then
    flag=$previous
  fi
  local command=\${COMP_WORDS[1]}
  if [[ $flag == -* ]] && _tunnel_value "$command" "$flag"; then return; fi
  if [[ $_tunnel_cur == -* ]]; then
    _tunnel_flags "$command"
  elif ((COMP_CWORD == 2)); then
    _tunnel_verbs "$command"
  else
    _tunnel_operand "$command" "\${COMP_WORDS[2]}"
  fi
}

complete -F _tunnel tunnel
`;

function flagsCase({ name, flags }: CommandWords): string {
  const words = flags.map(({ name }) => `--${name}`);
  return `  ${name}) _tunnel_words "${[...words, "--help"].join(" ")}" ;;`;
}

function offerOf(offer: WordOffer): string {
  switch (offer.kind) {
    case "none":
    case "anything":
      return ":";
    case "choices":
      return `_tunnel_words "${offer.choices.join(" ")}"`;
    case "files":
      return "_tunnel_paths -f";
    case "directories":
      return "_tunnel_paths -d";
    case "nodes":
    case "services":
    case "connections":
      return `_tunnel_names ${offer.kind}`;
  }
}
