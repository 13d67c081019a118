/** The image's modules are loaded when they are needed, none before. */

import { assertEquals } from "@std/assert";

Deno.test("what the image may load later is no literal", async () => {
  const script = Deno.readTextFileSync(
    new URL("../../deploy/image/root.sh", import.meta.url),
  );
  const line = /^sed .*\/program\/\*\.js$/m.exec(script)?.[0] ?? "false";
  const root = await Deno.makeTempDir();
  const folder = `${root}/usr/lib/tunnel/program`;
  await Deno.mkdir(folder, { recursive: true });
  const before = `import { a } from "./a.js";\n` +
    `const [b, c] = [await import("./b-1.js"), import(String("./c-2.js"))];\n`;
  await Deno.writeTextFile(`${folder}/main.js`, before);
  const { success } = await new Deno.Command("sh", {
    args: ["-euc", line],
    env: { root },
  }).output();
  assertEquals(success, true);
  assertEquals(
    await Deno.readTextFile(`${folder}/main.js`),
    before.replace('"./b-1.js"', 'String("./b-1.js")'),
  );
  await Deno.remove(root, { recursive: true });
});
