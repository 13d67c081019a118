/**
 * Makes mistakes, with the program as people run it.
 *
 * @module
 */

import { plainEnvironment } from "../support/program/run.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import type { Answer, Mistake } from "./mistake.ts";
import { patience } from "../support/watch/patience.ts";

/** What ends by itself has this long; it includes a dial's ten seconds. */
const ENDS_MS = 60_000;

/** Who runs on has said by then what is wrong. */
const SAYS_MS = 30_000;

/** Makes one, and waits for its end, or for what it says. */
export async function answerTo(
  mistake: Mistake,
  home: string,
): Promise<Answer> {
  const beganMs = performance.now();
  const words = [...mistake.prefix ?? [], ...ourCommand(...mistake.args)];
  const [program, ...args] = words;
  const child = new Deno.Command(program!, {
    args,
    clearEnv: true,
    env: { ...plainEnvironment(home), ...mistake.env },
    stdin: mistake.stdin === undefined ? "null" : "piped",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  if (mistake.stdin !== undefined) {
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(mistake.stdin));
    await writer.close();
  }
  const runsOn = mistake.exit === "runs on";
  let hasEnded = false;
  let wasEnded = false;
  const end = () => {
    if (hasEnded) return;
    wasEnded = true;
    child.kill("SIGKILL");
  };
  const limit = setTimeout(end, patience(runsOn ? SAYS_MS : ENDS_MS));
  const ended = child.status.then((status) => {
    hasEnded = true;
    return status;
  });
  const stderr = await read(child.stderr, (text) => {
    if (runsOn && text.split("\n").some((line) => mistake.says.test(line))) {
      end();
    }
  });
  const { code } = await ended;
  clearTimeout(limit);
  const tookMs = performance.now() - beganMs;
  return { code: wasEnded ? undefined : code, stderr, tookMs };
}

async function read(
  stream: ReadableStream<Uint8Array>,
  onText: (text: string) => void,
): Promise<string> {
  let text = "";
  for await (const part of stream.pipeThrough(new TextDecoderStream())) {
    text += part;
    onText(text);
  }
  return text;
}
