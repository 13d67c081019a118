/**
 * Makes mistakes, with the program as people run it.
 *
 * @module
 */

import { ourCommand } from "../support/program/tunnel.ts";
import type { Answer, Mistake } from "./mistake.ts";
import { patience } from "../support/watch/patience.ts";

/** What ends by itself has this long; it includes a dial's ten seconds. */
const ENDS_MS = 60_000;

/** Who runs on has said by then what is wrong. */
const SAYS_MS = 30_000;

/**
 * A machine on which nobody has set anything, at a home of its own: what is in
 * `/var/lib/tunnel` must not answer in our place.
 */
function environmentOf(home: string, mistake: Mistake): Record<string, string> {
  const kept = ["PATH", "DENO_DIR", "NPM_CONFIG_REGISTRY", "TMPDIR"]
    .flatMap((name) => {
      const value = Deno.env.get(name);
      return value === undefined ? [] : [[name, value] as const];
    });
  return {
    ...Object.fromEntries(kept),
    // The platform's own folder stays where it is, though HOME does not.
    DENO_DIR: Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`,
    HOME: home,
    XDG_STATE_HOME: `${home}/state`,
    ...mistake.env,
  };
}

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
    env: environmentOf(home, mistake),
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
