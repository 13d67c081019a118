import { assert, assertEquals, assertMatch } from "@std/assert";
import type { ConduitInfo } from "../../proto/admin/node_answer.ts";
import { columnsOf } from "../../platform/text/columns.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { FakeAdmin } from "../support/rigs/fake_admin.ts";
import { CONDUITS_ANSWER, SERVER_STATUS } from "../support/rigs/ask_answers.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";
import { whenLate } from "../support/watch/patience.ts";

// deno-lint-ignore no-control-regex -- what terminals obey
const CONTROLS = /\x1b\[[0-9;?]*[A-Za-z]|\r/g;

/** How long the next screen may take, on a machine that is busy. */
const WAIT_MS = 15_000;

class TypedTerminal implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #typing: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reading: Promise<void>;
  #output = "";
  #changed = Promise.withResolvers<void>();

  /**
   * @param command For a shell. What comes of the terminal is printed behind
   *   it: `code N`, and `sane` when all its settings are as they were.
   */
  constructor(command: string, size: { columns: number; rows: number }) {
    const shell = `tty; ${sizing(size)}; before=$(stty -g); ${command}; ` +
      'echo "code $?"; [ "$before" = "$(stty -g)" ] && echo sane';
    this.#child = new Deno.Command("script", {
      args: ["-qfec", shell, "/dev/null"],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
      env: { TERM: "xterm-256color", SHELL: "/bin/sh" },
    }).spawn();
    this.#typing = this.#child.stdin.getWriter();
    this.#reading = this.#read();
  }

  /** Whether this machine has what it takes. */
  static get isThere(): boolean {
    try {
      return new Deno.Command("script", { args: ["--version"] })
        .outputSync().success;
    } catch {
      return false;
    }
  }

  /** Everything that was written, as it was. */
  get output(): string {
    return this.#output;
  }

  /** The lines that were drawn last, without colours. */
  get screen(): string {
    const frames = this.#output.split("\x1b[H");
    return frames.at(-1)!.replaceAll(CONTROLS, "");
  }

  async type(keys: string): Promise<void> {
    await this.#typing.write(new TextEncoder().encode(keys));
  }

  /** As a window that is pulled: the program is sent SIGWINCH. */
  async resize(size: { columns: number; rows: number }): Promise<void> {
    const [tty = ""] = /\/dev\/\S+/.exec(this.#output) ?? [];
    const { columns, rows } = size;
    const { success } = await new Deno.Command("stty", {
      args: ["-F", tty, "cols", `${columns}`, "rows", `${rows}`],
    }).output();
    if (!success) throw new Error(`cannot resize ${tty}`);
  }

  /** Settles when what is on the screen matches. */
  until(pattern: RegExp): Promise<string> {
    return this.#until(pattern, () => this.screen);
  }

  /** Settles when what was written matches. */
  untilWritten(pattern: RegExp): Promise<string> {
    return this.#until(pattern, () => this.#output);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await this.#typing.abort().catch(() => {});
    await this.#child.status;
    await this.#reading;
  }

  async #until(pattern: RegExp, seen: () => string): Promise<string> {
    const late = Promise.withResolvers<never>();
    const inTime = whenLate(
      WAIT_MS,
      () => late.reject(new Error(`no ${pattern} in: ${seen()}`)),
    );
    try {
      while (!pattern.test(seen())) {
        await Promise.race([this.#changed.promise, late.promise]);
      }
      return seen();
    } finally {
      inTime();
    }
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of this.#child.stdout) {
      this.#output += decoder.decode(bytes, { stream: true });
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    }
  }
}

function sizing(size: { columns: number; rows: number }): string {
  return `stty cols ${size.columns} rows ${size.rows}`;
}

const ignore = !TypedTerminal.isThere;
const SIZE = { columns: 100, rows: 24 };

/** A server with three connections, of which those that are killed go. */
async function rig(size = SIZE) {
  const live = new Map<string, ConduitInfo>(
    CONDUITS_ANSWER.conduits.map((conduit) => [conduit.id, conduit]),
  );
  const kill = (id: string) => () => {
    live.delete(id);
    return { message: `Connection ${id} is ended: both sides see a reset` };
  };
  const admin = await FakeAdmin.open({
    "/v1/status": SERVER_STATUS,
    "/v1/conduits": () => ({ conduits: [...live.values()], total: live.size }),
    ...Object.fromEntries(
      [...live.keys()].map((id) => [`/v1/conduits/${id}/kill`, kill(id)]),
    ),
  });
  const command = [...ourCommand("top"), "--server", admin.socket]
    .map((word) => `'${word}'`).join(" ");
  const terminal = new TypedTerminal(command, size);
  return {
    admin,
    terminal,
    async [Symbol.asyncDispose]() {
      await terminal[Symbol.asyncDispose]();
      await admin[Symbol.asyncDispose]();
    },
  };
}

/** It ended in order, and left the terminal as it was. */
async function isOver(terminal: TypedTerminal, code = 0): Promise<void> {
  const output = await terminal.untilWritten(/sane|code \d+\r\n[^s]/);
  assertMatch(output, new RegExp(`code ${code}\r\nsane`));
  const opened = output.lastIndexOf("\x1b[?1049h");
  assert(output.lastIndexOf("\x1b[?1049l") > opened, "the screen is back");
  assert(output.lastIndexOf("\x1b[?25h") > opened, "the cursor is back");
  assert(output.lastIndexOf("\x1b[?7h") > opened, "lines wrap again");
}

Deno.test({
  name: "top on a terminal: choose, sort, filter, kill with a yes, quit",
  ignore,
  async fn() {
    await using s = await rig();
    const { admin, terminal } = s;
    await terminal.until(/alice[^]*q quit/);
    assertMatch(terminal.screen, /^10:03:12 .* server hub/);
    await terminal.type("b");
    await terminal.until(/by bytes/);
    const asked = (what: string) =>
      eventually(
        `it is asked for ${what}`,
        () => Promise.resolve(admin.asked.some((line) => line.includes(what))),
      );
    await asked("sort=bytes");
    // The second row, not the first.
    await terminal.type("\x1b[Bk");
    await terminal.until(/End web\.internal:443 at .*\? y\/n .*node:edge-8/);
    await terminal.type("n");
    await terminal.until(/nothing was ended/);
    assertEquals(admin.asked.some((line) => line.startsWith("POST")), false);
    await terminal.type("k");
    await terminal.until(/End .*\? y\/n/);
    await terminal.type("y");
    await terminal.until(/1111111111111111 is ended/);
    await terminal.until(/2 of 2 connections/);
    assertEquals(
      admin.asked.filter((line) => line.startsWith("POST")),
      ["POST /v1/conduits/1111111111111111/kill"],
    );
    await terminal.type("fedge-7\r");
    await terminal.until(/of edge-7, by bytes/);
    await asked("node=edge-7");
    await terminal.type("?");
    await terminal.until(/any key goes back/);
    await terminal.type("xq");
    await isOver(terminal);
  },
});

Deno.test({
  name: "top follows the size of its terminal, down to 40 columns",
  ignore,
  async fn() {
    await using s = await rig();
    const { terminal } = s;
    await terminal.until(/q quit/);
    for (const size of [[40, 12], [200, 50], [57, 6]] as const) {
      const [columns, rows] = size;
      const drawn = terminal.output.length;
      await terminal.resize({ columns, rows });
      await terminal.until(new RegExp(`^(?:.*\n){${rows - 1}}.*$`));
      assert(terminal.output.length > drawn);
      const lines = terminal.screen.split("\n");
      assertEquals(lines.length, rows);
      for (const line of lines) assert(columnsOf(line) <= columns, line);
    }
    await terminal.type("q");
    await isOver(terminal);
  },
});

Deno.test({
  name: "Ctrl-C, a signal and a closed input leave the terminal sane",
  ignore,
  async fn() {
    {
      await using s = await rig();
      await s.terminal.until(/q quit/);
      await s.terminal.type("\x03");
      await isOver(s.terminal);
    }
    {
      await using s = await rig();
      await s.terminal.until(/q quit/);
      await s.terminal.type("f\x04");
      await isOver(s.terminal);
    }
    for (const signal of ["TERM", "HUP"] as const) {
      await using s = await rig();
      await s.terminal.until(/q quit/);
      const [socket] = s.admin.socket.split(":").slice(1);
      // The shell and `script` have the same words in theirs.
      const found = await new Deno.Command("sh", {
        args: [
          "-c",
          `for p in $(pgrep -f ' top --server unix:${socket}'); do ` +
          "readlink /proc/$p/exe | grep -Eq '/(tunnel|deno)$' && echo $p; done",
        ],
      }).output();
      const own = new TextDecoder().decode(found.stdout).trim();
      // Not the empty word: process 0 is the group of this one.
      assertMatch(own, /^\d+$/);
      Deno.kill(Number(own), `SIG${signal}`);
      await isOver(s.terminal);
    }
  },
});

Deno.test("what follows a server ends when nobody reads it any more", async () => {
  let count = 0;
  await using admin = await FakeAdmin.open({
    "/v1/status": () => ({
      ...SERVER_STATUS,
      program: { ...SERVER_STATUS.program, id: `${++count}` },
    }),
    "/v1/conduits": CONDUITS_ANSWER,
  });
  for (const words of [["top"], ["status", "--watch"]]) {
    const command = [...ourCommand(...words), "--server", admin.socket]
      .map((word) => `'${word}'`).join(" ");
    const { stdout } = await new Deno.Command("sh", {
      args: ["-c", `${command} --interval 200ms | head -1`],
    }).output();
    assertMatch(new TextDecoder().decode(stdout), /server \d/);
  }
});
