import { assertEquals } from "@std/assert";
import { messageOf, withFile } from "./error_code.ts";

Deno.test("what the machine says of files names the file and what to do", async () => {
  const folder = await Deno.makeTempDir();
  const said = (act: () => Promise<unknown>) =>
    act().then(() => "nothing", messageOf);
  const at = `${folder}/it's`;
  const plain = `${folder}/plain`;
  await Deno.writeTextFile(plain, "");
  assertEquals(
    [
      await said(() => Deno.open(at)),
      await said(() => Deno.readTextFile(at)),
      await said(() => Deno.rename(`${at}-none`, at)),
      await said(() => Deno.mkdir(folder)),
      await said(() => Deno.readDir(at)[Symbol.asyncIterator]().next()),
      await said(() => Deno.stat(`${plain}/x`)),
      await said(() => Deno.open(folder, { write: true })),
      // The platform's words, without the file's name.
      await said(() =>
        Promise.reject(withFile(
          Object.assign(new Error("No space left on device (os error 28)"), {
            code: "ENOSPC",
          }),
          plain,
        ))
      ),
    ],
    [
      `cannot use ${at}: there is no such file`,
      `cannot use ${at}: there is no such file`,
      `cannot use ${at}: there is no such file`,
      `cannot use ${folder}: File exists`,
      `cannot use ${at}: there is no such file`,
      `cannot use ${plain}/x: a part of the path is no directory; name ` +
      "another one",
      `cannot use ${folder}: it is a directory; name a file`,
      `cannot use ${plain}: the disk is full; make room and try again`,
    ],
  );
  await Deno.remove(folder, { recursive: true });
});

Deno.test("what has no file keeps its words, without a number", () => {
  const said = new Error(
    "tcp connect error: Connection refused (os error 111)",
  );
  assertEquals(messageOf(said), "tcp connect error: Connection refused");
  assertEquals(messageOf("text"), "text");
});
