import { assertEquals, assertRejects } from "@std/assert";
import { answerText, printAnswer } from "./answer_output.ts";
import { ExitCode } from "./exit_codes.ts";
import type { SignalSource } from "./signals.ts";

const ANSWER = { name: "edge-7", links: 2, problem: undefined };
const table = ({ name }: { name: string }, isWide: boolean) =>
  `NAME${isWide ? "  LINKS" : ""}\n${name}${isWide ? "  2" : ""}\n`;

Deno.test("an answer is a table, all of it, JSON or YAML", () => {
  const text = (form: "table" | "wide" | "json" | "yaml") =>
    answerText({ table, form }, ANSWER);
  assertEquals(text("table"), "NAME\nedge-7\n");
  assertEquals(text("wide"), "NAME  LINKS\nedge-7  2\n");
  assertEquals(JSON.parse(text("json")), { name: "edge-7", links: 2 });
  assertEquals(text("yaml"), "name: edge-7\nlinks: 2\n");
});

/** Ctrl-C, when these answers were asked for. */
async function watched(
  form: "table" | "json" | "yaml",
  answers: readonly (string | Error)[],
  terminal?: { readonly columns: number; readonly rows: number },
) {
  let interrupt = () => {};
  const signals: SignalSource = {
    addSignalListener: (signal, listener) => {
      if (signal === "SIGINT") interrupt = listener;
    },
    removeSignalListener: () => {},
  };
  const printed: string[] = [];
  let round = 0;
  const code = await printAnswer(
    {
      ask: () => {
        const answer = answers[round++];
        if (answer === undefined) {
          interrupt();
          return new Promise<{ name: string }>(() => {});
        }
        return answer instanceof Error
          ? Promise.reject(answer)
          : Promise.resolve({ name: answer });
      },
      table: ({ name }) => `NAME\n${name}\n`,
      form,
      intervalMs: 1,
    },
    {
      print: (text) => printed.push(text),
      ...(terminal === undefined ? {} : { terminal: () => terminal }),
    },
    signals,
  );
  assertEquals(code, ExitCode.OK);
  return printed;
}

Deno.test("no terminal obeys a name in JSON, which stays the same value", () => {
  const hostile = "a\u001b[2J\u009b31m\u007f\u202eb\u2028\u200b\u{e0001}é\n😀";
  const answer = { [hostile]: [hostile] };
  const text = answerText({ table: () => "", form: "json" }, answer);
  assertEquals(JSON.parse(text), answer);
  assertEquals(
    /(?!\n)[\p{Cc}\p{Cf}\p{Zl}]/u.test(text),
    false,
  );
  assertEquals(text.includes("é") && text.includes("😀"), true);
  assertEquals(text.split("\n").length, 6);
});

Deno.test("a pipe gets each answer that differs, and Ctrl-C ends with 0", async () => {
  assertEquals(await watched("table", ["a", "a", "b"]), [
    "NAME\na\n",
    "\nNAME\nb\n",
  ]);
  assertEquals(await watched("json", ["a", "a", "b"]), [
    '{"name":"a"}\n',
    '{"name":"b"}\n',
  ]);
  assertEquals(await watched("yaml", ["a", "b"]), [
    "name: a\n",
    "---\nname: b\n",
  ]);
});

Deno.test("who watches is told that nothing is known now, and goes on", async () => {
  const late = new Error("no answer\u001b[2J");
  const shown = await watched("json", ["a", late, "b"]);
  assertEquals(shown.map((line) => Object.keys(JSON.parse(line))), [
    ["name"],
    ["problem"],
    ["name"],
  ]);
  // deno-lint-ignore no-control-regex -- what must not be there.
  assertEquals(/\x1b/.test(shown.join("")), false);
  await assertRejects(() => watched("table", [late]), Error, "no answer");
});

Deno.test("a terminal is drawn in place, and never scrolls", async () => {
  const size = { columns: 10, rows: 4 };
  const [first, second, last] = await watched(
    "table",
    ["a".repeat(30), "b\nc\nd\ne"],
    size,
  );
  assertEquals(
    first,
    "\x1b[?25lNAME\x1b[K\naaaaaaaaa…\x1b[K\n\x1b[J",
  );
  assertEquals(
    second,
    "\x1b[2A\rNAME\x1b[K\nb\x1b[K\n… 3 more …\x1b[K\n\x1b[J",
  );
  assertEquals(last, "\x1b[?25h");
});
