/**
 * Completion for bash and zsh, whose functions are the same `case`s: what may
 * stand behind a flag, behind a verb, and in its place. Each shell has its own
 * way to offer words. Words that are requested at run time are compared and
 * quoted without being expanded, because a peer may have chosen them.
 *
 * @module
 */

import type { CommandWords, WordOffer } from "./command_words.ts";

/** What a shell runs to offer words. */
interface Shell {
  readonly nothing: string;
  readonly files: string;
  readonly directories: string;
  choices(words: readonly string[]): string;
}

const BASH: Shell = {
  nothing: ":",
  files: "_tunnel_paths -f",
  directories: "_tunnel_paths -d",
  choices: (words) => `_tunnel_words "${words.join(" ")}"`,
};

const ZSH: Shell = {
  nothing: "_message 'a value'",
  files: "_files",
  directories: "_files -/",
  choices: (words) => `compadd -- ${words.map(quoted).join(" ")}`,
};

export function bashScript(commands: readonly CommandWords[]): string {
  const names = commands.map(({ name }) => name);
  const flags = commands.map(({ name, flags }) => {
    const words = [...flags.map((flag) => `--${flag.name}`), "--help"];
    return `  ${name}) ${BASH.choices(words)} ;;`;
  });
  return `${BASH_HEAD}_tunnel_commands() {
  ${BASH.choices(names)}
}

_tunnel_flags() {
  case "$1" in
${flags.join("\n")}
  esac
}

${caseFunctions(commands, BASH)}
${BASH_TAIL}`;
}

export function zshScript(commands: readonly CommandWords[]): string {
  const described = commands
    .map(({ name, summary }) => `    ${pair(name, summary)}`);
  const flags = commands.map(({ name, flags }) => {
    const words = flags.map((flag) => pair(`--${flag.name}`, flag.help));
    const lines = [...words, pair("--help", "Show the help")]
      .map((word) => `      ${word}`);
    return `    ${name}) flags=(\n${lines.join("\n")}\n    ) ;;`;
  });
  return `${ZSH_HEAD}_tunnel_commands() {
  local -a commands
  commands=(
${described.join("\n")}
  )
  _describe command commands
}

_tunnel_flags() {
  local -a flags
  case "$1" in
${flags.join("\n")}
  esac
  _describe flag flags
}

${caseFunctions(commands, ZSH)}
${ZSH_TAIL}`;
}

/** By `COMMAND --flag`, by `COMMAND VERB`, and the verbs of a command. */
function caseFunctions(
  commands: readonly CommandWords[],
  shell: Shell,
): string {
  const cases = (
    words: readonly (readonly [pattern: string, offer: WordOffer])[],
  ) =>
    words.map(([pattern, offer]) => `  ${pattern}) ${call(offer, shell)} ;;`)
      .join("\n");
  const values = commands.flatMap(({ name, flags }) =>
    flags.filter(({ value }) => value.kind !== "none").map((flag) => {
      const words = [`--${flag.name}`, ...flag.short ? [`-${flag.short}`] : []];
      const patterns = words.map((word) => `"${name} ${word}"`);
      return [patterns.join(" | "), flag.value] as const;
    })
  );
  const operands = commands.flatMap((
    { name, verbs, operand },
  ): (readonly [string, WordOffer])[] =>
    verbs.length === 0
      ? [[`"${name} "*`, operand]]
      : verbs.map((verb) => [`"${name} ${verb.name}"`, verb.operand])
  ).filter(([, { kind }]) => kind !== "none" && kind !== "anything");
  const verbs = commands.filter(({ verbs }) => verbs.length > 0)
    .map(({ name, verbs }) => {
      const choices = verbs.map((verb) => verb.name);
      return [name, { kind: "choices", choices }] as const;
    });
  return `_tunnel_value() {
  case "$1 $2" in
${cases(values)}
  *) return 1 ;;
  esac
  return 0
}

_tunnel_operand() {
  case "$1 $2" in
${cases(operands)}
  esac
}

_tunnel_verbs() {
  case "$1" in
${cases(verbs)}
  *) _tunnel_operand "$1" "" ;;
  esac
}
`;
}

function call(offer: WordOffer, shell: Shell): string {
  switch (offer.kind) {
    case "none":
    case "anything":
      return shell.nothing;
    case "choices":
      return shell.choices(offer.choices);
    case "files":
    case "directories":
      return shell[offer.kind];
    default:
      return `_tunnel_names ${offer.kind}`;
  }
}

/** `name:description`, as _describe reads it, quoted for the shell. */
function pair(name: string, description: string): string {
  return quoted(`${name.replaceAll(":", "\\:")}:${description}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

const BASH_HEAD =
  `# Completion of tunnel for bash; made by "tunnel completion bash".

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

const BASH_TAIL = `_tunnel() {
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

const ZSH_HEAD = `#compdef tunnel
# Completion of tunnel for zsh; made by "tunnel completion zsh".

# Names come from peers: an array is given to compadd, which quotes each.
_tunnel_names() {
  local -a names
  names=("\${(@f)$("\${words[1]}" complete-names "$1" 2>/dev/null)}")
  names=("\${(@)names:#}")
  compadd -a names
}

`;

const ZSH_TAIL = `_tunnel() {
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
