import { assertEquals, assertThrows } from "@std/assert";
import { reproducible, unpacking, withLazyCommands } from "./bundle.ts";

Deno.test("commands are no literals, and everything else is", () => {
  const text = `// a.ts\nawait import("./a-1.js");\n` +
    `// cli/commands.ts\nx(() => import("./b-2.js"), import("./c-3.js"));\n` +
    `// cli/run.ts\nawait import("./d-4.js");\n`;
  assertEquals(
    withLazyCommands(text),
    text.replace(/"\.\/[bc]-\d\.js"/g, "String($&)"),
  );
  assertThrows(() => withLazyCommands("// a.ts\n"), Error, "cli/commands.ts");
});

Deno.test("a bundle is the same, wherever its libraries are kept", async () => {
  const bundle = (home: string, a: string, b: string) =>
    new Map([
      ["main.js", `import "./chunk-${a}.js";\nimport "./chunk-${b}.js";\n`],
      [`chunk-${a}.js`, `// ${home}/npm/registry.example/lib/1.0.0/x.js\n1;\n`],
      [`chunk-${b}.js`, `import "./chunk-${a}.js";\n`],
    ]);
  const here = await reproducible(bundle("../..", "AAAAAAAA", "BBBBBBBB"));
  const there = await reproducible(bundle("/u/v", "DDDDDDDD", "CCCCCCCC"));
  assertEquals([...here], [...there]);
  assertEquals([...here.keys()].at(-1), "main.js");
  const [first = ""] = here.get("main.js")!.match(/chunk-[0-9a-f]{8}\.js/) ??
    [];
  assertEquals(here.get(first), "// npm/lib/1.0.0/x.js\n1;\n");
});

Deno.test("modules are unpacked whole, over what was left half done", async () => {
  const folder = await Deno.makeTempDir();
  const program = `${folder}/program`;
  await Deno.mkdir(program);
  await Deno.writeTextFile(`${program}/old.js`, "");
  const modules = new Map([["a.js", '`${1}`\u2028"\\'], ["main.js", "2"]]);
  const [code, texts] = unpacking(modules);
  await Deno.writeTextFile(`${folder}/pack.js`, code);
  await Deno.writeTextFile(`${folder}/texts`, code + texts);
  const args = [
    ...["run", "--quiet", `--allow-read=${folder}`],
    ...[`--allow-write=${folder}`, `${folder}/pack.js`],
    ...[`${folder}/texts`, program],
  ];
  const { success } = await new Deno.Command(Deno.execPath(), { args })
    .output();
  assertEquals(success, true);
  // A process that loads from it must not lose it to a start that comes later.
  for (const [name, daysAgo] of [["tunnel-0a", 8], ["tunnel-0b", 6]] as const) {
    const entry = `${folder}/${name}/main.js`;
    await Deno.mkdir(`${folder}/${name}`);
    await Deno.writeTextFile(entry, "");
    const then = Date.now() / 1000 - daysAgo * 24 * 3_600;
    await Deno.utime(entry, then, then);
  }
  const { ino } = await Deno.stat(program);
  const { stdout } = await new Deno.Command(Deno.execPath(), { args }).output();
  assertEquals(new TextDecoder().decode(stdout), "tunnel-0a\n");
  assertEquals((await Deno.stat(program)).ino, ino);
  const written = [...Deno.readDirSync(program)].map(({ name }) =>
    [name, Deno.readTextFileSync(`${program}/${name}`)] as const
  );
  assertEquals(new Map(written.sort()), modules);
  assertEquals([...Deno.readDirSync(folder)].length, 5);
  await Deno.remove(folder, { recursive: true });
});
