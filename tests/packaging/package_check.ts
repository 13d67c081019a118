/**
 * The packaged program on a machine that has nothing: an empty folder, an empty
 * HOME, no Deno. Usage: `deno task lab package`
 *
 * @module
 */

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { programWords } from "../support/program/program.ts";
import { runToEnd } from "../support/program/run.ts";

interface Outcome {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** A folder that holds the packaged file, as `tunnel`, and nothing else. */
async function withPackage(
  check: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const [file, ...words] = programWords();
    assertEquals(words, [], "TUNNEL_PROGRAM names no packaged file");
    await Deno.copyFile(file, `${folder}/tunnel`);
    await check(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function run(
  folder: string,
  environment: Record<string, string>,
  ...args: string[]
): Promise<Outcome> {
  const { code, stdout, stderr } = await runToEnd(
    [`${folder}/tunnel`, ...args],
    {
      ...{ cwd: folder, clearEnv: true },
      env: { PATH: "/usr/bin:/bin", ...environment },
    },
  );
  return { code, output: stdout, errors: stderr };
}

Deno.test("the packaged program", async (test) => {
  await withPackage(async (folder) => {
    const home = { HOME: `${folder}/home` };
    const cache = `${folder}/home/.cache/tunnel`;

    await test.step("runs in an empty folder with an empty HOME", async () => {
      const { code, output, errors } = await run(folder, home, "version");
      assertEquals({ code, errors }, { code: 0, errors: "" });
      assertMatch(output, /^tunnel \d+\.\d+\.\d+\n/);
    });

    await test.step("unpacks into a folder closed to others", async () => {
      assertEquals((await Deno.stat(cache)).mode! & 0o777, 0o700);
      const names = [...Deno.readDirSync(cache)].map(({ name }) => name);
      assertEquals(names.some((name) => name.startsWith(".new.")), false);
    });

    await test.step("hands on words and exit codes", async () => {
      const { code, errors } = await run(folder, home, "no such", "word");
      assertEquals(code, 2);
      assertStringIncludes(errors, 'Unknown command "no such"');
    });

    await test.step("refuses a folder that others could write to", async () => {
      const shared = `${folder}/shared`;
      await Deno.mkdir(shared);
      await Deno.chmod(shared, 0o777);
      const environment = { ...home, TUNNEL_CACHE_DIR: shared };
      const { code, errors } = await run(folder, environment, "version");
      assertEquals(code, 1);
      assertStringIncludes(errors, "is not mine alone (mode 0700)");
      assertEquals([...Deno.readDirSync(shared)], []);
    });

    await test.step("says so when it was cut short", async () => {
      const path = `${folder}/tunnel`;
      await Deno.truncate(path, 1_000_000);
      const environment = { HOME: `${folder}/other` };
      const { code, errors } = await run(folder, environment, "version");
      assertEquals(code, 1);
      assertStringIncludes(errors, "is damaged");
    });
  });
});
