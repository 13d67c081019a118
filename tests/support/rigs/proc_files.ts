/**
 * Files below `/proc`, for tests. The platform opens them only to programs that
 * may do everything; `cat` and `ls` may, too.
 *
 * @module
 */

/** The text of one file. */
export function readProcFile(path: string): string {
  return outputOf("cat", path);
}

/** The names in one folder. */
export function listProcFolder(path: string): string[] {
  return outputOf("ls", path).split("\n").filter((name) => name !== "");
}

function outputOf(command: string, path: string): string {
  const { code, stdout, stderr } = new Deno.Command(command, { args: [path] })
    .outputSync();
  if (code !== 0) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}
