import { createHash } from "node:crypto";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { ADDRESS_FILE_SAVE_DELAY_MS, AddressFile } from "./reserved_numbers.ts";

async function inFolder(
  act: (
    path: string,
    open: (range?: string) => {
      readonly file: AddressFile;
      readonly log: RecordedLog;
      readonly timers: FakeTimers;
    },
  ) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/proxy/addresses`;
  try {
    await act(path, (range = "ports 1-100") => {
      const [log, timers] = [new RecordedLog(), new FakeTimers()];
      const file = new AddressFile({ path, range, count: 100, log, timers });
      return { file, log, timers };
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("numbers are there again in the next life, and for their owner only", () =>
  inFolder(async (path, open) => {
    const { file, timers, log } = open();
    file.numbers.give("default/web:", 7);
    timers.advance(ADDRESS_FILE_SAVE_DELAY_MS);
    file.numbers.give("default/db:", 8);
    file.numbers.leave("default/db:");
    await file.close();
    assertEquals((await Deno.stat(path)).mode! & 0o777, 0o600);
    const next = open().file.numbers;
    assertEquals(next.claim("default/web:"), 7);
    assertEquals(next.claim("default/db:"), 8);
    assertEquals(next.claim("default/other:"), undefined);
    assertEquals(log.lines, []);
    // Another range has other numbers.
    const other = open("ports 5-6");
    assertEquals(other.file.numbers.claim("default/web:"), undefined);
    assertStringIncludes(
      other.log.lines[0]!.message,
      "it is of ports 1-100, this is ports 5-6",
    );
  }));

Deno.test("a file that is damaged does no harm, and is written anew", () =>
  inFolder(async (path, open) => {
    await Deno.mkdir(path.replace(/\/addresses$/, ""));
    for (const text of ["", "{", "[]", '{"format":"x"}', "\0".repeat(100)]) {
      await Deno.writeTextFile(path, text);
      const { file, log } = open();
      assertEquals([...file.numbers.all], [], text);
      assertMatch(log.lines[0]!.message, /it is damaged|it holds something/);
      assertStringIncludes(log.lines[0]!.message, "made of names anew");
      file.numbers.give("a", 1);
      await file.close();
      assertEquals(open().file.numbers.claim("a"), 1);
    }
  }));

Deno.test("what is sound of a file that is not all sound counts", () =>
  inFolder(async (path, open) => {
    const odd = [["a", 3], ["b", 100], ["c", -1], [7, 7], "x", null, [
      "d",
      1.5,
    ], ["__proto__", 4]];
    const { file } = open();
    file.numbers.give("a", 1);
    await file.close();
    const head = JSON.parse((await Deno.readTextFile(path)).split("\n")[0]!);
    const body = odd.map((item) => `${JSON.stringify(item)}\n`).join("");
    const sha256 = createHash("sha256").update(body).digest("hex");
    await Deno.writeTextFile(
      path,
      `${JSON.stringify({ ...head, sha256 })}\n${body}`,
    );
    const { numbers } = open().file;
    assertEquals([...numbers.all].map(({ number }) => number), [3, 4]);
    assertEquals(numbers.claim("__proto__"), 4);
  }));

Deno.test("a file that others could have written is not used", () =>
  inFolder(async (path, open) => {
    const { file } = open();
    file.numbers.give("a", 1);
    await file.close();
    await Deno.chmod(path, 0o622);
    const { file: next, log } = open();
    assertEquals([...next.numbers.all], []);
    assertStringIncludes(log.lines[0]!.message, "others could change it");
    next.numbers.give("b", 2);
    await next.close();
    assertEquals(open().file.numbers.claim("b"), 2);
  }));

Deno.test("a disk that takes nothing is said once, and the proxy goes on", () =>
  inFolder(async (path, open) => {
    await Deno.mkdir(`${path}/in/the/way`, { recursive: true });
    const { file, log } = open();
    log.lines.length = 0;
    for (const number of [1, 2]) {
      file.numbers.give(`owner ${number}`, number);
      await file.close();
    }
    assertEquals(log.lines.length, 1);
    assertStringIncludes(log.lines[0]!.message, "Cannot keep the addresses");
  }));
