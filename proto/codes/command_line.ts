/**
 * TUN1: the command line, the environment, configuration files, commands.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const COMMAND_LINE = {
  TUN101: {
    slug: "wrong-value",
    title: "A flag, variable or setting has a value that cannot be used",
    means: "The value was read, and it is not of the kind or in the range " +
      "that is wanted. Nothing was started.",
    causes: [
      "A typing error.",
      "A unit is missing: durations are `10s`, `1h30m`; sizes are `64KiB`.",
      "The variable `TUNNEL_…` or the file of `--config` still has an old value.",
    ],
    mend: [
      "Read what the line says was wanted, and give that.",
      "`tunnel config print server` shows each value and where it is from.",
    ],
    see: "flags.md",
  },
  TUN102: {
    slug: "unknown-flag",
    title: "There is no such flag",
    means: "The command does not have this flag. Nothing was started.",
    causes: ["A typing error.", "The flag belongs to another command."],
    mend: ["`tunnel help COMMAND` lists all flags of a command."],
    see: "flags.md",
  },
  TUN103: {
    slug: "value-missing",
    title: "A flag stands without its value",
    means: "The flag needs a value, and the command line ends or goes on " +
      "with the next flag.",
    causes: ["A shell variable that is empty.", "A blank behind `=`."],
    mend: ["Write `--flag=value`."],
    see: "flags.md",
  },
  TUN104: {
    slug: "flags-contradict",
    title: "Two settings exclude each other",
    means:
      "Both say the same thing in different ways, or one makes the other " +
      "impossible. Nothing was guessed, and nothing was started.",
    causes: [
      "One is on the command line, the other in a file or a variable.",
    ],
    mend: [
      "Keep the one that you mean.",
      "`tunnel config print server` shows where each is from.",
    ],
    see: "flags.md",
  },
  TUN105: {
    slug: "flag-lacks-another",
    title: "A setting has no meaning without another one",
    means: "The flag is about something that was not asked for, or it is one " +
      "half of a pair, such as a certificate without its key.",
    causes: ["The other half was forgotten."],
    mend: ["Give the flag that the line names, or remove this one."],
    see: "flags.md",
  },
  TUN106: {
    slug: "given-twice",
    title: "A flag is given more than once",
    means: "The flag takes one value, and the command line has several.",
    causes: ["A script adds flags to those that it was given."],
    mend: ["Keep one of them."],
    see: "flags.md",
  },
  TUN107: {
    slug: "not-built",
    title: "The flag is known, and what it asks for is not built",
    means:
      "The name is Konnectivity's. A flag that is accepted works here, so " +
      "this one is refused.",
    causes: ["Flags were taken over from Konnectivity."],
    mend: ["Remove the flag; the line says why it is not there."],
    see: "flags.md",
  },
  TUN108: {
    slug: "unknown-command",
    title: "There is no such command",
    means: "`tunnel` does not have the command, or the command does not have " +
      "the word behind it.",
    causes: ["A typing error."],
    mend: ["`tunnel help` lists all commands."],
    see: "flags.md",
  },
  TUN109: {
    slug: "unexpected-word",
    title: "The command line has a word too many",
    means: "All words that the command takes were there already.",
    causes: [
      "A blank in a value without quotes.",
      "A flag without its dashes.",
    ],
    mend: ["Put quotes around the value, or remove the word."],
    see: "flags.md",
  },
  TUN110: {
    slug: "argument-missing",
    title: "The command line lacks a word",
    means: "The command does not know what to do, or what to do it with.",
    causes: ["The name, the target or the file was forgotten."],
    mend: ["`tunnel help COMMAND` shows how the command is written."],
    see: "flags.md",
  },
  TUN111: {
    slug: "config-unreadable",
    title: "The file of --config cannot be read",
    means: "The file is not there, or it is not for this user to read.",
    causes: ["A wrong path.", "The owner or the mode of the file."],
    mend: ["`ls -l FILE`; run as its owner, or correct the path."],
    see: "operations.md",
  },
  TUN112: {
    slug: "config-wrong",
    title: "The file of --config has a mistake",
    means:
      "The file is no map of flags to values, or a name or a value in it " +
      "cannot be used.",
    causes: ["A typing error.", "Wrong indentation in YAML."],
    mend: ["`tunnel config check FILE` shows all mistakes with their lines."],
    see: "operations.md",
  },
  TUN113: {
    slug: "unknown-variable",
    title: "An environment variable looks like a misspelled flag",
    means: "A variable that begins with `TUNNEL_` is no flag of any command " +
      "and nearly is one. It would have had no effect.",
    causes: ["A typing error.", "The variable belongs to another program."],
    mend: ["Correct it, or `unset` it."],
    see: "flags.md",
  },
  TUN114: {
    slug: "file-unusable",
    title: "A file that a flag names cannot be read or written",
    means: "The machine refused the file, or it is not what was wanted.",
    causes: ["A wrong path.", "The owner or the mode of the file."],
    mend: ["`ls -l FILE`; run as its owner, or correct the path."],
    see: "operations.md",
  },
  TUN115: {
    slug: "flag-notice",
    title: "A flag is accepted and has no effect, or an unusual one",
    means: "The program runs. The line says what the flag does not do.",
    causes: ["Flags were taken over from Konnectivity."],
    mend: ["Remove the flag, or leave it: nothing else follows."],
    see: "flags.md",
  },
  TUN116: {
    slug: "config-not-reloaded",
    title: "A changed file could not be taken over",
    means: "The file changed on disk and cannot be used as it is now. What " +
      "was read before stays in use, and `/readyz` says so.",
    causes: ["A mistake in the new text.", "It is being written just now."],
    mend: [
      "`tunnel config check FILE` shows all mistakes with their lines.",
      "Correct the file; it is read again by itself.",
    ],
    see: "operations.md",
  },
  TUN118: {
    slug: "interrupted",
    title: "The command was interrupted",
    means: "Ctrl-C or a signal ended the command before it was done.",
    causes: ["Somebody pressed Ctrl-C."],
    mend: ["Run it again."],
    see: "operations.md",
  },
  TUN119: {
    slug: "command-failed",
    title: "A command could not do what it was asked to",
    means: "The sentence says what was seen. It has no code of its own.",
    causes: ["See the sentence."],
    mend: ["`tunnel doctor` looks for what is wrong."],
    see: "operations.md",
  },
  TUN120: {
    slug: "unknown-code",
    title: "There is no such code",
    means: "No code or name is in what `tunnel explain` was given.",
    causes: ["A typing error.", "The code is of a newer version."],
    mend: ["`tunnel explain --all` lists all codes."],
    see: "errors.md",
  },
  TUN121: {
    slug: "admin-unreachable",
    title: "The program that was asked does not answer",
    means: "Commands such as `status` ask a running server, agent or proxy. " +
      "None answered at that address.",
    causes: [
      "No program runs, or it has another state directory.",
      "It listens on another admin port.",
      "It stands still: it takes connections and answers nothing.",
    ],
    mend: [
      "`tunnel doctor server` (or agent, or proxy).",
      "Give the same `--state-dir` as the program, or `--admin-port`.",
    ],
    see: "operations.md",
  },
  TUN122: {
    slug: "admin-forbidden",
    title: "The program that was asked does not answer this user",
    means: "The admin API knows who asks, and this user may not.",
    causes: ["It answers root and the user that runs it.", "A wrong token."],
    mend: ["Run the command as the program's user, with `sudo` for instance."],
    see: "operations.md",
  },
  TUN123: {
    slug: "admin-refused",
    title: "The program that was asked cannot do that",
    means:
      "It answered, and not with what was wanted: it has nothing of that " +
      "name, or this kind of program does not do that.",
    causes: ["A typing error in a name.", "An older version runs there."],
    mend: ["`tunnel status` says what runs, and its version."],
    see: "operations.md",
  },
  TUN124: {
    slug: "document-wrong",
    title: "A configuration file has a mistake",
    means: "The line says where it is, what was seen and what was wanted.",
    causes: ["A typing error.", "Wrong indentation in YAML."],
    mend: ["`tunnel config check FILE` shows all mistakes with their lines."],
    see: "operations.md",
  },
} as const satisfies Area;
