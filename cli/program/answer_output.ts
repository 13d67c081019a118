/**
 * Asks a running program, and prints its answer: as a table, as a wide table,
 * as JSON or as YAML; once or repeatedly.
 *
 * @module
 */

import { stringify } from "../../platform/documents/yaml.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { orAborted } from "../../platform/time/deadline.ts";
import { pause } from "../../platform/time/pause.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { jsonText, printable } from "../../platform/text/printable.ts";
import type { AnswerForm, AskedProgram } from "../flags/admin_flags.ts";
import { cutPainted } from "../../admin/ask/page.ts";
import type { CommandContext } from "./command.ts";
import { ExitCode } from "./exit_codes.ts";
import { ENDS, onSignals, type SignalSource } from "./signals.ts";
import { AdminClient } from "../../admin/ask/admin_client.ts";

/** What is printed, and how. */
export interface AnswerOutput<T> {
  /** Asks. */
  readonly ask: () => Promise<T>;
  /** For people. @param isWide With all columns. */
  readonly table: (answer: T, isWide: boolean) => string;
  /** For programs; the whole answer unless given. */
  readonly data?: (answer: T) => unknown;
  readonly form: AnswerForm;
  /** Asks again after so long, until Ctrl-C; absent: once. */
  readonly intervalMs?: number | undefined;
  /**
   * With `intervalMs`: ends after this many answers; absent: it does not end.
   */
  readonly times?: number;
  /** What the command ends with; OK unless given. */
  readonly exitCode?: (answer: T) => ExitCode;
}

/** A terminal's width and height, in characters. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** @throws What `ask` throws, at the first time. */
export async function printAnswer<T>(
  output: AnswerOutput<T>,
  context: Pick<CommandContext, "print" | "terminal" | "isRead">,
  signals: SignalSource = Deno,
): Promise<ExitCode> {
  const { intervalMs } = output;
  if (intervalMs === undefined) {
    const answer = await output.ask();
    context.print(answerText(output, answer));
    return output.exitCode?.(answer) ?? ExitCode.OK;
  }
  const stopping = new AbortController();
  using _ends = onSignals(ENDS, () => stopping.abort(), signals);
  await follow(output, context, intervalMs, stopping.signal);
  return ExitCode.OK;
}

/** The text of one answer. */
export function answerText<T>(
  { table, data, form }: Pick<AnswerOutput<T>, "table" | "data" | "form">,
  answer: T,
): string {
  const value = () => data === undefined ? answer : data(answer);
  switch (form) {
    case "json":
      return `${jsonText(value(), 2)}\n`;
    case "yaml":
      return yamlText(value());
    default:
      return table(answer, form === "wide");
  }
}

async function follow<T>(
  output: AnswerOutput<T>,
  context: Pick<CommandContext, "print" | "terminal" | "isRead">,
  intervalMs: number,
  signal: AbortSignal,
): Promise<void> {
  const screen = new Screen(context);
  let isFirst = true;
  let left = output.times ?? Infinity;
  try {
    while (!signal.aborted) {
      const asking = asked(output);
      const text = await orAborted(
        isFirst ? asking : asking.catch(problemText),
        signal,
      ).catch((error) => {
        if (!signal.aborted) throw error;
      });
      if (text === undefined) return;
      screen.show(text, output.form, isFirst);
      isFirst = false;
      if (--left === 0 || context.isRead?.() === false) return;
      await pause(systemTimers, intervalMs, signal);
    }
  } finally {
    screen.close();
  }
}

/** In a pipe each JSON answer is one line. */
async function asked<T>(output: AnswerOutput<T>): Promise<Shown> {
  const answer = await output.ask();
  const { data, form } = output;
  const line = form === "json"
    ? `${jsonText(data === undefined ? answer : data(answer))}\n`
    : undefined;
  return { text: answerText(output, answer), line };
}

/** A watching user sees the problem, and the watch goes on. */
function problemText(error: unknown): Shown {
  const message = printable(messageOf(error), PROBLEM_LENGTH_MAX);
  return {
    text: `${message}\n`,
    line: `${JSON.stringify({ problem: message })}\n`,
  };
}

const PROBLEM_LENGTH_MAX = 1_000;

interface Shown {
  readonly text: string;
  /** The text for a pipe, if it differs. */
  readonly line: string | undefined;
}

/** A terminal, where the newest answer replaces the last one; or a pipe. */
class Screen {
  /** Its present content, in lines; in a pipe, the last text. */
  #lines = 0;
  #last = "";

  constructor(
    private readonly context: Pick<CommandContext, "print" | "terminal">,
  ) {}

  show({ text, line = text }: Shown, form: AnswerForm, isFirst: boolean): void {
    const size = this.context.terminal?.();
    if (size !== undefined) return this.#redraw(text, size, isFirst);
    if (line === this.#last) return;
    const between = form === "json" ? "" : form === "yaml" ? "---\n" : "\n";
    this.context.print((isFirst ? "" : between) + line);
    this.#last = line;
  }

  close(): void {
    if (this.#lines > 0) this.context.print(SHOW_CURSOR);
  }

  #redraw(text: string, size: TerminalSize, isFirst: boolean): void {
    const lines = fitting(text, size);
    const back = this.#lines === 0 ? "" : `\x1b[${this.#lines}A\r`;
    const drawn = lines.map((line) => `${line}\x1b[K\n`).join("");
    this.context.print(
      `${isFirst ? HIDE_CURSOR : ""}${back}${drawn}\x1b[J`,
    );
    this.#lines = lines.length;
  }
}

const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";

/** The lines that a terminal has room for: it must not scroll. */
function fitting(
  text: string,
  { columns, rows }: TerminalSize,
): readonly string[] {
  const all = text.replace(/\n$/, "").split("\n");
  const room = Math.max(2, rows - 1);
  const shown = all.length <= room
    ? all
    : [...all.slice(0, room - 1), `… ${all.length - room + 1} more lines`];
  return shown.map((line) => cutPainted(line, columns));
}

/** Absent fields are left out, as in JSON. */
function yamlText(value: unknown): string {
  return stringify(JSON.parse(JSON.stringify(value)));
}

/** For a user at a terminal, who is told when a program does not answer. */
export function askedClient(
  { program, address }: AskedProgram,
  { printError }: Pick<CommandContext, "printError">,
): AdminClient {
  return new AdminClient(program, address, {
    onWaiting: (line) => printError(`${line}\n`),
  });
}
