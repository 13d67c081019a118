/**
 * A program that answers the admin API with what a test says, on a unix socket
 * in a state directory.
 *
 * @module
 */

import { ADMIN_SOCKET } from "../../../net/admin/admin_api.ts";
import { run } from "../../../cli/run.ts";

/** An answer, or a refusal with its status. */
export type FakeAnswer = unknown | Response;

/** What came of a command. */
export interface CommandOutcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class FakeAdmin implements AsyncDisposable {
  /** Such as `POST /v1/conduits/1/kill`, in their order. */
  readonly asked: string[] = [];
  readonly #server: Deno.HttpServer<Deno.UnixAddr>;

  private constructor(
    readonly directory: string,
    answers: Readonly<Record<string, FakeAnswer>>,
  ) {
    const known = new Map(Object.entries(answers));
    this.#server = Deno.serve({
      path: `${directory}/${ADMIN_SOCKET}`,
      onListen: () => {},
    }, (request) => {
      const { pathname, search } = new URL(request.url);
      this.asked.push(`${request.method} ${pathname}${search}`);
      const answer = known.get(pathname);
      if (answer instanceof Response) return answer.clone();
      if (typeof answer === "function") return Response.json(answer());
      return answer === undefined
        ? Response.json({ message: "there is none" }, { status: 404 })
        : Response.json(answer);
    });
  }

  /** @param answers By path, without the query; a function is called. */
  static async open(
    answers: Readonly<Record<string, FakeAnswer>>,
  ): Promise<FakeAdmin> {
    return new FakeAdmin(await Deno.makeTempDir(), answers);
  }

  get socket(): string {
    return `unix:${this.directory}/${ADMIN_SOCKET}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
    await Deno.remove(this.directory, { recursive: true });
  }
}

/** Runs a command in this process, without a terminal. */
export async function runCommand(
  argv: readonly string[],
  more: {
    readonly confirm?: (question: string) => boolean;
    readonly environment?: Readonly<Record<string, string>>;
  } = {},
): Promise<CommandOutcome> {
  let [stdout, stderr] = ["", ""];
  const code = await run({
    argv,
    environment: (name) => more.environment?.[name],
    readFile: (path) => Deno.readTextFileSync(path),
    print: (text) => stdout += text,
    printError: (text) => stderr += text,
    ...more.confirm === undefined ? {} : { confirm: more.confirm },
  });
  return { code, stdout, stderr };
}
