import { assertEquals } from "@std/assert";
import { openLibc } from "./libc.ts";

Deno.test({
  name: "open descriptors are counted, with or without the kernel's own count",
  ignore: openLibc() === undefined,
  async fn() {
    // Tests in this process open and close some.
    const here = new URL(".", import.meta.url).href;
    const module = `
const { copyDescriptor, openDescriptors } = await import("${here}descriptors.ts");
const { listProcFolder } = await import("${here}proc_files.ts");
const counts = [openDescriptors()];
for (let copy = 0; copy < 100; copy++) copyDescriptor(2);
counts.push(openDescriptors(), listProcFolder("/proc/self/fd").length - 1);
console.log(JSON.stringify(counts));`;
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--quiet", module],
    }).output();
    const [before, after, listed] = JSON.parse(
      new TextDecoder().decode(stdout),
    );
    assertEquals([after - before, after], [100, listed]);
  },
});
