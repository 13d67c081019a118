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
    title: "The command line or a setting cannot be understood",
    means:
      "A flag, a word, a variable, a rule or a target is unknown, is not " +
      "of the kind or in the range that is wanted, lacks another, or " +
      "contradicts another. Nothing was started or dialed.",
    causes: [
      "A typing error, or a blank in a value without quotes.",
      "A unit is missing: durations are `10s`, `1h30m`; sizes are " +
      "`64KiB`.",
      "A target without a port, or IPv6 without brackets: `HOST:PORT`, " +
      "`[::1]:80`.",
      "A name, a file or the other half of a pair (a certificate's key) was " +
      "forgotten, or a shell variable is empty.",
      "A flag of another command, of another program, or one of " +
      "Konnectivity's that is not built here.",
      "Two settings exclude each other, one on the command line, the other " +
      "in a file or a variable `TUNNEL_…`.",
      "A TLS version or cipher suite that the machine's OpenSSL does not " +
      "have.",
    ],
    mend: [
      "Read what the line says was wanted, and give that.",
      "`tunnel help` lists all commands, `tunnel help COMMAND --all` all " +
      "flags of one, `tunnel explain --all` all codes.",
      "`tunnel config print server` shows each value and where it is " +
      "from.",
    ],
    see: "reference/flags.md",
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
    title: "A setting has no effect here, or an unusual one",
    means: "The program runs. The line says what does not follow: what the " +
      "flag does not do, or that UDP answers may leave from another " +
      "address.",
    causes: [
      "Flags were taken over from Konnectivity.",
      "The system does not say at which address a datagram arrived.",
    ],
    mend: [
      "Remove the flag, or leave it: nothing else follows.",
      "UDP: bind to one address instead of a wildcard.",
    ],
    see: "reference/flags.md",
  },
  TUN119: {
    slug: "command-failed",
    title: "A command failed",
    means: "The sentence says what was seen. It has no code of its own.",
    causes: [
      "See the sentence.",
      "Ctrl-C was pressed.",
      "What `tunnel adsc` was told to wait for did not come.",
    ],
    mend: ["`tunnel doctor` looks for what is wrong."],
    see: "operations.md",
  },
  TUN121: {
    slug: "admin-unreachable",
    title: "The program that was asked does not answer",
    means: "Commands such as `status` ask a running server, agent or proxy. " +
      "None answered at that address, or none has run with that state " +
      "directory.",
    causes: [
      "No program runs, or it has another state directory.",
      "It listens on another admin port, or runs as another user.",
      "It hangs: it accepts connections and does not answer.",
    ],
    mend: [
      "`tunnel doctor server` (or agent, or proxy).",
      "Give the same `--state-dir` as the program, or `--admin-port`.",
    ],
    see: "operations.md",
  },
  TUN122: {
    slug: "admin-forbidden",
    title: "This user may not ask the program, or read its identity",
    means: "The admin API knows the caller, and this user has no right. Or " +
      "the state directory is another user's: it is unknown whether the node " +
      "has joined.",
    causes: [
      "The command runs as another user than the program; the API answers " +
      "root and the user that runs it.",
      "A wrong token.",
    ],
    mend: ["Run the command as the program's user, with `sudo` for instance."],
    see: "operations.md",
  },
  TUN123: {
    slug: "admin-refused",
    title: "The program that was asked cannot do that",
    means: "Its answer was not the wanted one: it has no service, " +
      "client or token of that name, or this kind of program does not do " +
      "that. Nothing was changed.",
    causes: [
      "A typing error in a name.",
      "It is known to another server, or was removed before.",
      "An older version runs there.",
    ],
    mend: [
      "`tunnel status` says what runs, and its version.",
      "`tunnel services`, `tunnel xds status` and `tunnel token list` " +
      "list what there is.",
    ],
    see: "operations.md",
  },
  TUN124: {
    slug: "document-wrong",
    title: "A configuration file or an entry of a source has a mistake",
    means: "The line says where it is, what was seen and what was wanted. At " +
      "the start the program ends; later the earlier content stays in " +
      "use, and `/readyz` says so. Of a source the other entries are " +
      "used.",
    causes: [
      "A typing error.",
      "Wrong indentation in YAML.",
      "The file cannot be read, or is being written just now.",
    ],
    mend: [
      "`tunnel config check FILE` shows all mistakes with their lines; " +
      "`--kind policy` or `--kind services` sets its kind.",
      "Correct the file; it is read again by itself.",
    ],
    see: "operations.md",
  },
} as const satisfies Area;
