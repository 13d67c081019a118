/**
 * The processes and files of a demo, and their cleanup: however the demo ends,
 * `strike` removes both.
 *
 * @module
 */

import { AdminClient, AdminError } from "../../admin/ask/admin_client.ts";
import { ADMIN_SOCKET } from "../../net/admin/admin_api.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type {
  ProgramInfo,
  StatusAnswer,
} from "../../proto/admin/status_answer.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { TextLineStream } from "@std/streams";
import { messageOf, quietly } from "../../platform/errors/error_code.ts";
import { removeFile } from "../../platform/files/atomic_file.ts";
import { failure } from "../program/exit_codes.ts";
import { selfCommand } from "../program/rights.ts";

/** How long a process may take to get ready. */
const READY_TIMEOUT_MS = 10_000;
/** Time between two checks. */
const READY_INTERVAL_MS = 25;
/** Lines of a process's log that are shown when it fails. */
const LAST_LINES = 5;

/** A process of the demo. */
interface Actor {
  readonly process: Deno.ChildProcess;
  /** The end of its log. */
  readonly lines: string[];
  /** Settles when it has ended and its whole output is in `lines`. */
  readonly through: Promise<Deno.CommandStatus>;
  hasEnded: boolean;
}

/** See the module description. */
export class Stage {
  readonly #folder: string;
  readonly #actors = new Map<string, Actor>();
  #isStruck = false;

  /** @param program How this program is started again. */
  constructor(private readonly program = selfCommand()) {
    // Only its owner can look into it (mode 0700): there are keys inside.
    try {
      this.#folder = Deno.makeTempDirSync({ prefix: "tunnel-demo-" });
    } catch (error) {
      const place = Deno.env.get("TMPDIR") ?? "/tmp";
      throw failure(
        `Cannot make a folder in ${place}: ${messageOf(error)}; set TMPDIR`,
      );
    }
  }

  /** A path inside the demo's folder. */
  path(name: string): string {
    return `${this.#folder}/${name}`;
  }

  /** Starts this program again, with other words. */
  start(name: string, ...args: string[]): void {
    // An interrupted story goes on for a moment; no process may start after
    // that.
    if (this.#isStruck) throw new Error("Cannot start: the demo is over");
    const [program, ...words] = this.program;
    const process = new Deno.Command(program, {
      args: [...words, ...args],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const lines: string[] = [];
    const through = Promise.all([
      process.status,
      keepLastLines(process.stdout, lines),
      keepLastLines(process.stderr, lines),
    ]).then(([status]) => status);
    const actor: Actor = { process, lines, through, hasEnded: false };
    this.#actors.set(name, actor);
    unawaited("task", process.status.then(() => actor.hasEnded = true));
  }

  /** Runs a command to its end, and returns the last line that it printed. */
  async run(name: string, ...args: string[]): Promise<string> {
    this.start(name, ...args);
    const { lines, through } = this.#actors.get(name)!;
    const { success } = await through;
    if (success) return lines.at(-1) ?? "";
    throw new Error(`Cannot run the ${name}: it said: ${lines.join(" | ")}`);
  }

  /** Starts a process and waits for the first line that it prints. */
  async startForLine(name: string, ...args: string[]): Promise<string> {
    this.start(name, ...args);
    const { lines } = this.#actors.get(name)!;
    return await this.#until(name, () => lines[0]);
  }

  /**
   * Starts a program on ports that the system chooses, and waits until it says
   * of itself that it is ready.
   *
   * @returns Where it listens.
   */
  async startReady(
    name: string,
    directory: string,
    ...args: string[]
  ): Promise<ProgramInfo["addresses"]> {
    const root = this.path(directory);
    this.start(name, ...args, `--state-dir=${root}`);
    const path = `${root}/${ADMIN_SOCKET}`;
    using client = new AdminClient(name, { kind: "unix", path });
    return await this.#until(name, async () => {
      try {
        const { program } = await client.get<StatusAnswer>(ADMIN_PATHS.status);
        const { isReady, addresses } = program;
        // A server takes agents before it is ready: then one is linked to it.
        const isUp = isReady || addresses["agents"] !== undefined;
        return isUp ? addresses : undefined;
      } catch (error) {
        if (!(error instanceof AdminError)) throw error;
        // Not listening yet, which is what this waits for.
        return undefined;
      }
    });
  }

  /** Ends one process at once, as a node that lost its power. */
  async kill(name: string): Promise<void> {
    const actor = this.#actors.get(name)!;
    // It may have ended already, perhaps just now: that was the goal.
    quietly(() => actor.process.kill("SIGKILL"));
    await actor.process.status;
  }

  /** Ends everything and removes all files. Nothing starts afterwards. */
  async strike(): Promise<void> {
    this.#isStruck = true;
    await Promise.all([...this.#actors.keys()].map((name) => this.kill(name)));
    await removeFile(this.#folder, { recursive: true });
  }

  async #until<T>(
    name: string,
    look: () => T | undefined | Promise<T | undefined>,
  ): Promise<T> {
    const actor = this.#actors.get(name)!;
    const deadlineMs = performance.now() + READY_TIMEOUT_MS;
    while (!actor.hasEnded && performance.now() < deadlineMs) {
      const seen = await look();
      if (seen !== undefined) return seen;
      await new Promise((resolve) => setTimeout(resolve, READY_INTERVAL_MS));
    }
    if (actor.hasEnded) await actor.through;
    const what = actor.hasEnded ? "it ended" : "it took too long";
    throw new Error(
      `Cannot start the ${name}: ${what}; it said: ` +
        (actor.lines.join(" | ") || "nothing"),
    );
  }
}

async function keepLastLines(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  lines: string[],
): Promise<void> {
  const texts = stream
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new TextLineStream());
  for await (const line of texts) {
    lines.push(line);
    if (lines.length > LAST_LINES) lines.shift();
  }
}
