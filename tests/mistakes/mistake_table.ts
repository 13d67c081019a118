/**
 * All mistakes, made and judged: each as people make it, some at once.
 *
 * @module
 */

import { askingMistakes } from "./asking.ts";
import { commandLineMistakes } from "./command_line.ts";
import { dialingMistakes } from "./dialing.ts";
import { joiningMistakes } from "./joining.ts";
import { machineMistakes } from "./machines.ts";
import { type Answer, lacksOf, type Mistake } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";
import { serviceMistakes } from "./services.ts";
import { servingMistakes } from "./serving.ts";
import { stateMistakes } from "./states.ts";
import { troubledNodeMistakes } from "./troubled_nodes.ts";
import { plainEnvironment } from "../support/program/run.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { patience } from "../support/watch/patience.ts";

/** What ends by itself has this long; it includes a dial's ten seconds. */
const ENDS_MS = 60_000;

/** Who runs on has said by then what is wrong. */
const SAYS_MS = 30_000;

/** Makes one, and waits for its end, or for what it says. */
async function answerTo(mistake: Mistake, home: string): Promise<Answer> {
  const { prefix = [], args, env, exit, says } = mistake;
  const beganMs = performance.now();
  const [program, ...words] = [...prefix, ...ourCommand(...args)];
  const child = new Deno.Command(program!, {
    args: words,
    clearEnv: true,
    env: { ...plainEnvironment(home), ...env },
    ...{ stdin: "null", stdout: "null", stderr: "piped" },
  }).spawn();
  let wasEnded = false;
  const end = () => {
    wasEnded = true;
    child.kill("SIGKILL");
  };
  const runsOn = exit === "runs on";
  const limit = setTimeout(end, patience(runsOn ? SAYS_MS : ENDS_MS));
  let stderr = "";
  for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
    stderr += part;
    const isTold = stderr.split("\n").some((line) => says.test(line));
    if (runsOn && isTold && !wasEnded) end();
  }
  const { code } = await child.status;
  clearTimeout(limit);
  const tookMs = performance.now() - beganMs;
  return { code: wasEnded ? undefined : code, stderr, tookMs };
}

/** Programs that run at once. */
const AT_ONCE = 3;

const AREAS = {
  "the command line": commandLineMistakes,
  "joining and linking": joiningMistakes,
  "state": stateMistakes,
  "dialing": dialingMistakes,
  "nodes in trouble": troubledNodeMistakes,
  "asking": askingMistakes,
  "serving": servingMistakes,
  "services": serviceMistakes,
  "the machine": machineMistakes,
} as const;

/** Makes all of them. @returns What was said to those that got no good answer. */
export async function badAnswers(
  stage: MistakeStage,
): Promise<readonly string[]> {
  const home = stage.directory("home");
  const mistakes = Object.entries(AREAS).flatMap(([area, mistakesOf]) =>
    mistakesOf(stage).map((mistake) => ({ area, mistake }))
  );
  const names = new Set(mistakes.map(({ mistake: { what } }) => what));
  if (names.size !== mistakes.length) throw new Error("two of one name");
  const bad: string[] = [];
  const left = mistakes.values();
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (const { area, mistake } of left) {
      const { code, stderr, ...answer } = await answered(mistake, home);
      const lacks = lacksOf(mistake, { code, stderr, ...answer });
      if (lacks.length === 0) continue;
      bad.push(
        `${area}: ${mistake.what} (${lacks.join("; ")})\n` +
          `    ended with ${code}: ${stderr.trim().slice(0, 800)}`,
      );
    }
  }));
  return bad;
}

async function answered(mistake: Mistake, home: string): Promise<Answer> {
  let answer: Answer | undefined;
  const run = async () => void (answer = await answerTo(mistake, home));
  await (mistake.around === undefined ? run() : mistake.around(run));
  return answer!;
}
