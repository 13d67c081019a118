/**
 * Flags that commands have alike: help, config file, log, form of the output.
 *
 * @module
 */

import {
  booleanFlag,
  choiceFlag,
  common,
  countFlag,
  fileFlag,
  type Flag,
  inGroup,
} from "./flag.ts";

/** `--help` and `--config`. */
export const GENERAL_FLAGS = inGroup("General", {
  "help": common(booleanFlag(false, { short: "h", help: "Show this text." })),
  "config": common(fileFlag({
    once: true,
    holdsFlags: true,
    help: "Read flags from this .json or .yaml file: one map, with the same " +
      "names. The command line and TUNNEL_* variables win over it.",
  })),
});

/** Level and form of the log. */
export const LOG_FLAGS = inGroup("Logging", {
  "v": common(countFlag(2, 0, 10, {
    help: "Level of the log: 0 problems, 1 start and stop, 2 links, " +
      "refusals and failed connections, 4 every connection, 6 stacks of " +
      "failures, 10 every packet. Konnectivity: 4.",
    placeholder: "LEVEL",
  })),
  "log-format": common(choiceFlag(["text", "json"], "text", {
    help: "Form of the log, one line per event: for people or for machines.",
  })),
});

/** A shorter way to write `--output json`. */
export const JSON_FLAG: { readonly json: Flag<boolean> } = {
  "json": booleanFlag(false, {
    help: "The same as --output json.",
    means: { flag: "output", value: "json" },
  }),
};

/** The form of what a command prints that asks no program. */
export const FORM_FLAG = {
  "output": choiceFlag(["text", "json"], "text", {
    short: "o",
    help: "For people or for programs.",
  }),
} as const;
