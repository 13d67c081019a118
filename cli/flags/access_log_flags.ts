/**
 * Flags about the access log, which servers, agents and proxies have alike.
 *
 * @module
 */

import {
  ACCESS_FORMATS,
  type AccessFormat,
} from "../../policy/access_format.ts";
import type { AccessLogOptions } from "../../policy/access_log.ts";
import { standardStreams } from "../../policy/standard_streams.ts";
import {
  bytesFlag,
  choiceFlag,
  common,
  countFlag,
  type Flag,
  FlagValueError,
  inGroup,
  parsedFlag,
  textFlag,
} from "./flag.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/** A line for each connection. */
export const ACCESS_LOG_FLAGS = inGroup("Access log", {
  "access-log": common(textFlag("", {
    placeholder: "FILE|-|stderr",
    help: "Write a line for each connection that has ended or failed; - is " +
      "standard output.",
  })),
  "access-log-format": choiceFlag(ACCESS_FORMATS, "text", {
    help: "Form of a line: key=value text, JSON, or as NCSA and Apache write " +
      "it.",
  }),
  "access-log-sample": sampleFlag(),
  "access-log-max-size": bytesFlag(100 * MIB, 64 * KIB, 1024 * 1024 * MIB, {
    help: "Rotate the file at this size.",
  }),
  "access-log-max-files": countFlag(5, 1, 1000, {
    help: "Number of files to keep; the oldest is removed.",
  }),
});

function sampleFlag(): Flag<number> {
  return parsedFlag(1, (text) => {
    const part = partOf(text);
    if (part > 0 && part <= 1) return part;
    throw new FlagValueError("wanted a part such as 0.1 or 1/10, at most 1");
  }, {
    placeholder: "PART",
    defaultText: "1",
    help: "Write this part of the connections only, the same ones in all " +
      "programs; those that fail are always written.",
  });
}

/** NaN: it is none. */
function partOf(text: string): number {
  const match = /^(\d{1,9}(?:\.\d{1,9})?)(?:\/(\d{1,9}))?$/.exec(text);
  if (match === null) return NaN;
  return Number(match[1]) / Number(match[2] ?? 1);
}

/**
 * @param worker Each has a file of its own: two could not rotate one.
 * @returns What options are to have of it: nothing when none is wanted.
 */
export function accessLog(
  flags: {
    readonly "access-log": string;
    readonly "access-log-format": AccessFormat;
    readonly "access-log-sample": number;
    readonly "access-log-max-size": number;
    readonly "access-log-max-files": number;
  },
  worker?: { readonly index: number },
): { readonly access?: AccessLogOptions } {
  const path = flags["access-log"];
  if (path === "") return {};
  const { index = 0 } = worker ?? {};
  const isShared = index === 0 || standardStreams(path) !== undefined;
  return {
    access: {
      file: {
        path: isShared ? path : `${path}.w${index}`,
        bytesMax: flags["access-log-max-size"],
        filesMax: flags["access-log-max-files"],
      },
      format: flags["access-log-format"],
      sample: flags["access-log-sample"],
    },
  };
}
