import { assertEquals } from "@std/assert";
import { progressBar, ProgressLine } from "./progress.ts";

function screenOf(columns: number | undefined) {
  const written: string[] = [];
  return {
    written,
    screen: {
      write: (text: string) => void written.push(text),
      columns: () => columns,
    },
  };
}

Deno.test("a terminal has one line, cut to its width, and then none", () => {
  const { written, screen } = screenOf(12);
  const line = new ProgressLine(screen);
  line.show("1 of 57");
  line.show("1 of 57");
  line.show("41 of 57 nodes know it");
  line.clear();
  line.clear();
  assertEquals(written, [
    "\r\x1b[K1 of 57",
    "\r\x1b[K41 of 57 n…",
    "\r\x1b[K",
  ]);
});

Deno.test("a pipe, and a terminal that cannot move, get nothing", () => {
  const { written, screen } = screenOf(undefined);
  const line = new ProgressLine(screen);
  line.show("1 of 57");
  line.clear();
  assertEquals(line.isLive, false);
  assertEquals(written, []);
});

Deno.test("names of nodes do nothing to the terminal", () => {
  const { written, screen } = screenOf(80);
  new ProgressLine(screen).show("waits for \x1b]0;owned\x07\nnode");
  assertEquals(
    ["\n", "\x07"].some((each) => written[0]!.includes(each)),
    false,
  );
  assertEquals(written[0]!.lastIndexOf("\x1b"), 1);
});

Deno.test("a bar is as long as it is told, whatever the part", () => {
  assertEquals([-1, 0, 0.5, 1, 2].map((part) => progressBar(part, 4)), [
    "░░░░",
    "░░░░",
    "██░░",
    "████",
    "████",
  ]);
});
