/**
 * A program that answers the admin API with what a test says, on a unix socket
 * in a state directory.
 *
 * @module
 */

import { ADMIN_SOCKET } from "../../../net/admin/admin_api.ts";
import { type Ran, tunnel } from "../program/command_line.ts";

/** An answer, or a refusal with its status. */
export type FakeAnswer = unknown | Response;

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

  /** Runs `tunnel …` about this server. */
  tunnel(...argv: readonly string[]): Promise<Ran> {
    return tunnel([...argv, "--server", this.socket]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
    await Deno.remove(this.directory, { recursive: true });
  }
}
