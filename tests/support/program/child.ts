import { patience } from "../watch/patience.ts";
/**
 * A program under test as a child process: its output in a file, its end
 * certain. Children are ended one by one, by their pid, never by name.
 *
 * @module
 */

const READY_TIMEOUT_MS = 120_000;
const POLL_MS = 20;
const STOP_TIMEOUT_MS = 10_000;
const LOG_TAIL_BYTES = 2_000;

export interface ChildOptions {
  /** Stands in messages. */
  readonly name: string;
  readonly command: readonly string[];
  /** Where standard output and error go. */
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

const living = new Set<Child>();

/** See the module description. */
export class Child {
  readonly name: string;
  readonly logFile: string;
  readonly ended: Promise<Deno.CommandStatus>;
  #process: Deno.ChildProcess;
  #status: Deno.CommandStatus | undefined;

  constructor(options: ChildOptions) {
    this.name = options.name;
    this.logFile = options.logFile;
    // The shell opens the file and then becomes the program, so the program
    // writes it by itself and costs this process nothing while it is measured.
    this.#process = new Deno.Command("/bin/sh", {
      args: [
        "-c",
        'exec "$@" >>"$0" 2>&1',
        options.logFile,
        ...options.command,
      ],
      stdin: "null",
      stdout: "null",
      stderr: "null",
      ...(options.env === undefined ? {} : { env: options.env }),
    }).spawn();
    living.add(this);
    this.ended = this.#process.status.then((status) => {
      living.delete(this);
      this.#status = status;
      return status;
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get hasEnded(): boolean {
    return this.#status !== undefined;
  }

  /**
   * Waits until `url` answers 200.
   *
   * @throws {Error} With the end of the log, when the program ends first or
   * is not ready in two minutes: busy machines are slow.
   */
  async untilReady(url: string, client?: Deno.HttpClient): Promise<void> {
    const deadline = Date.now() + patience(READY_TIMEOUT_MS);
    while (!await answers(url, client)) {
      if (this.hasEnded) {
        const tail = await this.logTail();
        throw new Error(
          `${this.name} ended with ${this.#status?.code} before it was ready:\n${tail}`,
        );
      }
      if (Date.now() > deadline) {
        const tail = await this.logTail();
        throw new Error(
          `${this.name}: no 200 from ${url} in ${READY_TIMEOUT_MS} ms:\n${tail}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /**
   * Waits until somebody listens at a port of this machine.
   *
   * @throws {Error} As {@linkcode untilReady} does.
   */
  async untilListening(port: number): Promise<void> {
    const deadline = Date.now() + patience(READY_TIMEOUT_MS);
    while (!await isListening(port)) {
      if (this.hasEnded || Date.now() > deadline) {
        const tail = await this.logTail();
        throw new Error(`${this.name} does not listen on ${port}:\n${tail}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /**
   * Waits until the output matches `pattern`.
   *
   * @throws {Error} As {@linkcode untilReady} does.
   */
  async untilPrinted(pattern: RegExp): Promise<RegExpExecArray> {
    const deadline = Date.now() + patience(READY_TIMEOUT_MS);
    for (;;) {
      const log = await Deno.readTextFile(this.logFile).catch(() => "");
      const match = pattern.exec(log);
      if (match !== null) return match;
      if (this.hasEnded || Date.now() > deadline) {
        throw new Error(`${this.name} did not print ${pattern}:\n${log}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async logTail(): Promise<string> {
    const log = await Deno.readTextFile(this.logFile).catch(() => "(no log)");
    return log.slice(-LOG_TAIL_BYTES);
  }

  signal(signal: Deno.Signal): void {
    try {
      if (!this.hasEnded) this.#process.kill(signal);
    } catch (error) {
      // It ended between the look and the signal: what was wanted anyway.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  /** Ends it: politely with SIGTERM and by force when that takes too long. */
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    this.signal(signal);
    const timer = setTimeout(
      () => this.signal("SIGKILL"),
      patience(STOP_TIMEOUT_MS),
    );
    await this.ended;
    clearTimeout(timer);
    await this.#checkLog();
  }

  /** Ours goes on after a slip: the test must not. */
  async #checkLog(): Promise<void> {
    const log = await Deno.readTextFile(this.logFile).catch(() => "");
    const [line] = /^.*internal error, please report it.*$/m.exec(log) ?? [];
    if (line !== undefined) throw new Error(`${this.name}: ${line}`);
  }
}

/** Ends every child that is still there, at once. */
export async function killAllChildren(): Promise<void> {
  await Promise.all([...living].map((child) => child.stop("SIGKILL")));
}

/**
 * Makes SIGINT and SIGTERM end this process only after its children, and
 * after `cleanUp`.
 */
export function endChildrenOnSignals(cleanUp: () => Promise<void>): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => {
      killAllChildren().then(cleanUp).finally(() => Deno.exit(130));
    });
  }
}

async function isListening(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionRefused) return false;
    throw error;
  }
}

async function answers(
  url: string,
  client?: Deno.HttpClient,
): Promise<boolean> {
  try {
    const response = await fetch(url, {
      ...client === undefined ? {} : { client },
      signal: AbortSignal.timeout(patience(2_000)),
    });
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    // Not listening yet; the caller's deadline decides how long to go on.
    return false;
  }
}
