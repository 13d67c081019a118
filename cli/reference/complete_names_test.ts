import { assert, assertEquals } from "@std/assert";
import { COMPLETE_NAMES_COMMAND } from "./complete_names.ts";
import { patience } from "../../tests/support/watch/patience.ts";
import { ran } from "../../tests/support/program/command_line.ts";

async function printed(...argv: string[]): Promise<string> {
  const { code, output, errors } = await ran(COMPLETE_NAMES_COMMAND.run, argv, {
    environment: (name) => name === "HOME" ? "/nowhere" : undefined,
  });
  assertEquals(code, 0);
  return output + errors;
}

async function withProgram(
  answer: () => Response | Promise<Response>,
  run: (directory: string) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/admin.sock`;
  const server = Deno.serve({ path, onListen: () => {} }, answer);
  try {
    await run(directory);
  } finally {
    await server.shutdown();
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("names of nodes are printed, and none that would obey", async () => {
  const names = ["node1", "two\nlines", "\u001b[2J", "$(x)", "", "two words"];
  names.push("--server=evil:1", "-x", "a-b");
  const answer = () =>
    Response.json({ nodes: names.map((name) => ({ name })), total: 6 });
  await withProgram(answer, async (directory) => {
    assertEquals(
      await printed("nodes", `--state-dir=${directory}`),
      "node1\n$(x)\na-b\n",
    );
  });
});

Deno.test("who does not answer is not waited for, and nothing is said", async () => {
  const waiting = Promise.withResolvers<Response>();
  await withProgram(() => waiting.promise, async (directory) => {
    const began = performance.now();
    assertEquals(await printed("nodes", `--state-dir=${directory}`), "");
    assert(performance.now() - began < patience(2_000));
    waiting.resolve(new Response());
  });
  assertEquals(await printed("nodes", "--state-dir=/nowhere"), "");
  assertEquals(await printed("planets"), "");
  await withProgram(() => new Response("<html>"), async (directory) => {
    assertEquals(await printed("services", `--state-dir=${directory}`), "");
  });
});
