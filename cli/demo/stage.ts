/**
 * The processes and files of a demo, and their certain end: whatever happens,
 * `strike` leaves neither behind.
 *
 * @module
 */

import { TextLineStream } from "@std/streams";
import { ThrowawayCa } from "../../host/tls/throwaway_ca.ts";
import { selfCommand } from "../self_command.ts";

/** How long a process may take to get ready. */
const READY_TIMEOUT_MS = 10_000;
/** Between two looks at whether it is. */
const READY_INTERVAL_MS = 25;
/** Lines of a process's log that are shown when it fails. */
const LAST_LINES = 5;

/** A process of the demo. */
interface Actor {
  readonly name: string;
  readonly process: Deno.ChildProcess;
  /** The end of its log. */
  readonly lines: string[];
  hasEnded: boolean;
}

/** Files of a certificate and its key. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** See the module description. */
export class Stage {
  readonly #folder: string;
  readonly #actors = new Map<string, Actor>();
  #ca: ThrowawayCa | undefined;
  #isStruck = false;

  constructor() {
    // Only its owner can look into it (mode 0700): there are keys inside.
    this.#folder = Deno.makeTempDirSync({ prefix: "tunnel-demo-" });
  }

  /** A path inside the demo's folder. */
  path(name: string): string {
    return `${this.#folder}/${name}`;
  }

  /** Makes the authority; its certificate is `ca.crt`. */
  async makeAuthority(): Promise<void> {
    this.#ca = await ThrowawayCa.create("tunnel demo");
    await Deno.writeTextFile(this.path("ca.crt"), this.#ca.cert);
  }

  /** Issues a certificate for `name`; a server's is for loopback. */
  async issue(
    name: string,
    usage: "server" | "client",
  ): Promise<CertificateFiles> {
    const names = usage === "server"
      ? ["tunnel-server", "localhost", "127.0.0.1"]
      : [name];
    const pair = await this.#ca!.issue({ commonName: name, usage, names });
    const files = {
      cert: this.path(`${name}.crt`),
      key: this.path(`${name}.key`),
    };
    await Deno.writeTextFile(files.cert, pair.cert);
    await Deno.writeTextFile(files.key, pair.key);
    return files;
  }

  /** Starts this program again, with other words. */
  start(name: string, ...args: string[]): void {
    // An interrupted story goes on for a moment; nothing may start behind it.
    if (this.#isStruck) throw new Error("Cannot start: the demo is over");
    const [program, ...words] = selfCommand();
    const process = new Deno.Command(program, {
      args: [...words, ...args],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const actor: Actor = { name, process, lines: [], hasEnded: false };
    this.#actors.set(name, actor);
    void process.status.then(() => actor.hasEnded = true);
    void keepLastLines(process.stdout, actor.lines);
    void keepLastLines(process.stderr, actor.lines);
  }

  /** Starts a process and waits for the first line that it prints. */
  async startForLine(name: string, ...args: string[]): Promise<string> {
    this.start(name, ...args);
    const { lines } = this.#actors.get(name)!;
    return await this.#until(name, () => lines[0]);
  }

  /** Waits until `http://127.0.0.1:port/readyz` says so. */
  async ready(name: string, port: number): Promise<void> {
    const url = `http://127.0.0.1:${port}/readyz`;
    await this.#until(name, async () => {
      try {
        const response = await fetch(url);
        await response.body?.cancel();
        return response.ok ? true : undefined;
      } catch {
        // Not listening yet, which is what is being waited for.
        return undefined;
      }
    });
  }

  /** Ends one process at once, as a node that lost its power. */
  async kill(name: string): Promise<void> {
    const actor = this.#actors.get(name)!;
    try {
      actor.process.kill("SIGKILL");
    } catch {
      // It has ended already, perhaps in this moment: that is what was wanted.
    }
    await actor.process.status;
  }

  /** Ends everything and removes all files. Nothing starts afterwards. */
  async strike(): Promise<void> {
    this.#isStruck = true;
    await Promise.all([...this.#actors.keys()].map((name) => this.kill(name)));
    try {
      await Deno.remove(this.#folder, { recursive: true });
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
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
    const what = actor.hasEnded ? "it ended" : "it took too long";
    throw new Error(
      `Cannot start the ${name}: ${what}; it said: ` +
        (actor.lines.join(" | ") || "nothing"),
    );
  }
}

/** A port that was free a moment ago. */
export function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
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
