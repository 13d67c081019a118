import { assertEquals } from "@std/assert";
import { zipOf } from "./zip_file.ts";

const FILES = new Map([
  ["a.txt", new TextEncoder().encode("one\n".repeat(1_000))],
  ["b/c.txt", new TextEncoder().encode("two\n")],
]);

Deno.test("a ZIP archive is what another reader of them says it is", async () => {
  const path = await Deno.makeTempFile({ suffix: ".zip" });
  const archive = await zipOf("folder", FILES);
  await Deno.writeFile(path, archive);

  const script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n" +
    "assert z.testzip() is None\n" +
    "for n in z.namelist(): print(n, len(z.read(n)))";
  const { stdout } = await new Deno.Command("python3", {
    args: ["-c", script, path],
  }).output();
  await Deno.remove(path);
  assertEquals(
    new TextDecoder().decode(stdout),
    "folder/a.txt 4000\nfolder/b/c.txt 4\n",
  );
  assertEquals(await zipOf("folder", FILES), archive);
});
