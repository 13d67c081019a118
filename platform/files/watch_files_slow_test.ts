import { assertEquals } from "@std/assert";
import { systemTimers } from "../time/system_timers.ts";
import { watchFiles } from "./watch_files.ts";

Deno.test("the platform's news of every kind of replacement arrive", async () => {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/certs/tls.crt`;
  let reported = Promise.withResolvers<readonly string[]>();
  const watch = watchFiles({
    files: [file],
    timers: systemTimers,
    onFiles: (files) => reported.resolve(files),
    onProblem: (line) => reported.reject(new Error(line)),
  });
  const steps: readonly (() => void)[] = [
    () => Deno.mkdirSync(`${folder}/certs`),
    () => Deno.writeTextFileSync(file, "1"),
    () => Deno.writeTextFileSync(file, "2"),
    () => {
      Deno.writeTextFileSync(`${folder}/new`, "3");
      Deno.renameSync(`${folder}/new`, file);
    },
    () => {
      Deno.mkdirSync(`${folder}/next/..1`, { recursive: true });
      Deno.writeTextFileSync(`${folder}/next/..1/tls.crt`, "4");
      Deno.symlinkSync("..1", `${folder}/next/..data`);
      Deno.symlinkSync("..data/tls.crt", `${folder}/next/tls.crt`);
      Deno.renameSync(`${folder}/certs`, `${folder}/old`);
      Deno.renameSync(`${folder}/next`, `${folder}/certs`);
    },
    () => {
      Deno.mkdirSync(`${folder}/certs/..2`);
      Deno.writeTextFileSync(`${folder}/certs/..2/tls.crt`, "5");
      Deno.symlinkSync("..2", `${folder}/certs/..tmp`);
      Deno.renameSync(`${folder}/certs/..tmp`, `${folder}/certs/..data`);
    },
    () => Deno.writeTextFileSync(`${folder}/certs/..2/tls.crt`, "6"),
    () => Deno.removeSync(`${folder}/certs`, { recursive: true }),
  ];
  for (const [index, step] of steps.entries()) {
    reported = Promise.withResolvers();
    step();
    // The directory alone is no news of a file in it.
    if (index > 0) {
      assertEquals(await reported.promise, [file], `step ${index}`);
    }
  }
  watch.close();
  await Deno.remove(folder, { recursive: true });
});
