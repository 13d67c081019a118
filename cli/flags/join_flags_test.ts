import { assertEquals, assertThrows } from "@std/assert";
import { UsageError } from "./usage_error.ts";
import { joinTokenText } from "./join_flags.ts";

const TOKEN = "tnl1.aaaa.bbbb.cccc";

const READERS = {
  file(path: string): string {
    if (path === "none") throw new Deno.errors.NotFound("No such file");
    return path === "empty" ? "\n" : `${TOKEN}\n`;
  },
  input: () => `tunnel join ${TOKEN} --server a:8091\n`,
};

Deno.test("a token is a word, a file's, or what standard input says", () => {
  assertEquals(joinTokenText(TOKEN, "", READERS), TOKEN);
  assertEquals(joinTokenText("", "", READERS), "");
  assertEquals(joinTokenText("", "token", READERS), TOKEN);
  assertEquals(joinTokenText("-", "", READERS), TOKEN);
  assertEquals(joinTokenText("", "-", READERS), TOKEN);
});

Deno.test("a token that cannot be read is reported in one line, without it", () => {
  const cases = [
    [TOKEN, "token", "give one of them"],
    ["", "none", "Cannot use --join-file none: there is no such file"],
    ["", "empty", "there is no token in empty"],
  ] as const;
  for (const [word, file, words] of cases) {
    const { message } = assertThrows(
      () => joinTokenText(word, file, READERS),
      UsageError,
      words,
    );
    assertEquals(message.includes("bbbb"), false);
    assertEquals(message.split("\n").length, 1);
  }
});
