/**
 * PostgreSQL through the service proxy: a session that stays, a large result, a
 * statement that is cancelled over a connection of its own, a server that dies.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { Child } from "../../tests/support/program/child.ts";
import { debianCommand } from "../peers/debian.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { eventually } from "./kube_case.ts";
import { FlappingService, output, type ProxyCases } from "./proxy_case.ts";

const USER = "tunnel";
const ROWS = 10_000;
/** Of each row, before its number: all of them are ten megabytes. */
const FILLING = 1_000;
const SESSIONS = 50;

/** How long a statement runs that nobody ends. */
const SLEEP_S = 120;
/** How soon psql has to notice: far sooner than that. */
const NOTICED_MS = 10_000;

/**
 * Words before a program that refuses to run as root, where we are: in a user
 * namespace of its own it is nobody, and our files are still its own.
 */
async function asNobody(): Promise<string[]> {
  return await output(["id", "-u"]) === "0\n" ? ["unshare", "--user"] : [];
}

/** A server with a database of its own. */
class Postgres implements AsyncDisposable {
  readonly port = freePort();
  readonly #folder: string;
  readonly #logFile: string;
  #child: Child | undefined;

  private constructor(workspace: Workspace) {
    this.#folder = workspace.path("postgres");
    this.#logFile = workspace.path("postgres.log");
  }

  static async start(workspace: Workspace): Promise<Postgres> {
    const postgres = new Postgres(workspace);
    await output([
      ...await asNobody(),
      ...await debianCommand("initdb"),
      ...["--pgdata", postgres.#folder, "--username", USER],
      ...["--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8"],
    ]);
    await postgres.start();
    return postgres;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Starts it, or starts it again where it was. */
  async start(): Promise<void> {
    this.#child = new Child({
      name: "postgres",
      command: [
        ...await asNobody(),
        ...await debianCommand("postgres"),
        ...["-D", this.#folder, "-p", String(this.port), "-h", "127.0.0.1"],
        // No socket in a folder that others see, and nothing waits for disks.
        ...["-c", "unix_socket_directories=", "-c", "fsync=off"],
      ],
      logFile: this.#logFile,
    });
    await eventually(
      "postgres answers",
      async () => await ask(this.port, "select 1").catch(() => "") === "1\n",
    );
  }

  /** Its sessions notice by themselves that the one who started them is gone. */
  async die(): Promise<void> {
    await this.#child!.stop("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.die();
  }
}

async function psqlCommand(
  port: number,
  ...words: readonly string[]
): Promise<string[]> {
  return [
    ...await debianCommand("psql"),
    ...["--no-psqlrc", "--tuples-only", "--no-align", "--host=127.0.0.1"],
    ...[`--port=${port}`, `--username=${USER}`, "--dbname=postgres"],
    ...words,
  ];
}

/** One statement in a session of its own. */
async function ask(port: number, statement: string): Promise<string> {
  return await output(await psqlCommand(port, `--command=${statement}`));
}

/** A psql that is at work for long. */
class LongStatement {
  readonly #ended: Promise<Deno.CommandOutput>;

  private constructor(private readonly process: Deno.ChildProcess) {
    this.#ended = process.output();
  }

  /** @param direct The server's own port, to see that the statement runs. */
  static async start(port: number, direct: number): Promise<LongStatement> {
    const statement = `select pg_sleep(${SLEEP_S})`;
    const [program, ...args] = await psqlCommand(port, "-c", statement);
    const process = new Deno.Command(program!, {
      args,
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const seen = "select count(*) from pg_stat_activity " +
      `where state = 'active' and query = '${statement}'`;
    await eventually(
      "the statement runs",
      async () => await ask(direct, seen) === "1\n",
    );
    return new LongStatement(process);
  }

  /** What Ctrl-C does: psql asks the server over another connection. */
  interrupt(): void {
    this.process.kill("SIGINT");
  }

  /** What it complained of at its end, which must come soon. */
  async complaint(): Promise<string> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.process.kill("SIGKILL");
      late.reject(new Error(`psql has not ended after ${NOTICED_MS} ms`));
    }, NOTICED_MS);
    try {
      const { code, stderr } = await Promise.race([this.#ended, late.promise]);
      assert(code !== 0, "psql ended well");
      return new TextDecoder().decode(stderr);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** `tunnel proxy` before one server that stays and one address that is dead. */
function serve(
  workspace: Workspace,
  { address }: Postgres,
): Promise<FlappingService> {
  return FlappingService.start(workspace, {
    endpoints: [address, `127.0.0.1:${freePort()}`],
    steady: [address],
  });
}

export const PROXY_POSTGRES_CASES: ProxyCases = {
  "psql gets in each time, and a result of ten megabytes whole": async (
    workspace,
  ) => {
    await using postgres = await Postgres.start(workspace);
    await using service = await serve(workspace, postgres);
    const rows = await ask(
      service.port,
      `select repeat('x', ${FILLING}) || i from generate_series(1, ${ROWS}) i`,
    );
    const wanted = Array.from(
      { length: ROWS },
      (_, at) => `${"x".repeat(FILLING)}${at + 1}\n`,
    );
    assert(rows === wanted.join(""), `${rows.length} bytes came`);
    for (let count = 0; count < SESSIONS; count++) {
      assertEquals(
        await ask(service.port, `select ${count} + 1`),
        `${count + 1}\n`,
      );
    }
    assert(service.changes > 5, `only ${service.changes} changes`);
  },

  "psql gives as much as it gets, in one session": async (workspace) => {
    await using postgres = await Postgres.start(workspace);
    await using service = await serve(workspace, postgres);
    const lines = Array.from(
      { length: ROWS },
      (_, at) => `${"y".repeat(FILLING)}${at}\n`,
    );
    const script = "create table given (line text);\ncopy given from stdin;\n" +
      `${lines.join("")}\\.\n` +
      "select count(*), sum(length(line)) from given;\n";
    const said = await output(await psqlCommand(service.port), script);
    const bytes = lines.reduce((sum, { length }) => sum + length - 1, 0);
    assertMatch(said, new RegExp(`^${ROWS}\\|${bytes}$`, "m"));
  },

  "psql cancels a statement, over a connection of its own": async (
    workspace,
  ) => {
    await using postgres = await Postgres.start(workspace);
    await using service = await serve(workspace, postgres);
    const statement = await LongStatement.start(service.port, postgres.port);
    statement.interrupt();
    assertMatch(
      await statement.complaint(),
      /canceling statement due to user request/,
    );
  },

  "psql notices at once that its server is gone, and gets in when it is back":
    async (workspace) => {
      await using postgres = await Postgres.start(workspace);
      await using service = await serve(workspace, postgres);
      const statement = await LongStatement.start(service.port, postgres.port);
      await postgres.die();
      assertMatch(
        await statement.complaint(),
        /server closed the connection|terminating connection/,
      );
      await ask(service.port, "select 1").then(
        () => assert(false, "nobody is there"),
        (error) =>
          assertMatch(error.message, /server closed|Connection reset|refused/),
      );
      await postgres.start();
      // As soon as the endpoint is not left out any more for its failures.
      await eventually(
        "psql gets in again",
        async () =>
          await ask(service.port, "select 2").catch(() => "") === "2\n",
      );
    },
};
