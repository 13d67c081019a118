// deno-lint-ignore-file no-console -- a command that says what it does.
/**
 * Makes `docs/recordings/*.svg`: four questions, each answered by `tunnel status`
 * alone, before a tunnel of real processes. `deno task lab recordings` makes them
 * anew; numbers and times differ from run to run, the shape does not.
 *
 * @module
 */

import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { GONE, RecordedStage, SLOW } from "./recorded_stage.ts";
import { plain, terminalSvg } from "./terminal_svg.ts";

/** Where they stand. */
export const RECORDINGS = new URL("../../docs/recordings/", import.meta.url);

/** A terminal of somebody's. */
const [COLUMNS, ROWS] = [104, 60];

/** Where the recorded server would be on a machine. */
const STATE = "/var/lib/tunnel/server";

interface Question {
  readonly file: string;
  readonly title: string;
  /** A line that must be there, and those that are marked. */
  readonly answer: RegExp;
}

/** What a person asks first; see docs/troubleshooting.md. */
export const QUESTIONS: readonly Question[] = [
  {
    file: "offline.svg",
    title: "Which nodes are offline, and since when",
    answer: new RegExp(String.raw`^\s+${GONE} .*\d{4}-\d\d-\d\d`),
  },
  {
    file: "slow.svg",
    title: `Why the node ${SLOW} is slow`,
    answer: new RegExp(String.raw`^\s+slow: ${SLOW} .*\d ms.*`),
  },
  {
    file: "connected.svg",
    title: `Who is connected to the node ${SLOW}`,
    answer: new RegExp(String.raw`^\s+\S.* ${SLOW} .* tcp |^\s+connected: `),
  },
  {
    file: "expires.svg",
    title: "What expires next",
    answer: /^\s+\d+[dhms]\S*\s+token /,
  },
];

/** What the command writes to a terminal: `script` gives it one. */
async function written(stage: RecordedStage): Promise<string> {
  const words = ourCommand("status").map((word) => `'${word}'`).join(" ");
  const { stdout, success } = await new Deno.Command("script", {
    args: [
      "-qec",
      `stty cols ${COLUMNS} rows ${ROWS}; exec ${words}`,
      "/dev/null",
    ],
    env: {
      TUNNEL_STATE_DIR: stage.stateDirectory,
      TERM: "xterm-256color",
      NO_COLOR: "",
    },
    stdin: "null",
    stderr: "null",
  }).output();
  const text = new TextDecoder().decode(stdout);
  if (!success) throw new Error(plain(text));
  return text.replaceAll(stage.stateDirectory, STATE)
    .replaceAll(stage.workspace.folder, "/var/lib/tunnel");
}

if (import.meta.main) {
  await using stage = await RecordedStage.start();
  const output = await written(stage);
  for (const { file, title, answer } of QUESTIONS) {
    if (!plain(output).split("\n").some((line) => answer.test(line))) {
      throw new Error(`no answer to "${title}" in:\n${output}`);
    }
    const svg = terminalSvg({
      title,
      command: "tunnel status",
      output,
      isAnswer: (line) => answer.test(line),
    });
    await Deno.writeTextFile(new URL(file, RECORDINGS), svg);
    console.log(
      `docs/recordings/${file} (${(svg.length / 1e3).toFixed(1)} kB)`,
    );
  }
}
