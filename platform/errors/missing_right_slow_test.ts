import { assertEquals } from "@std/assert";
import { asFaultOfOurs, tellsMissingRight } from "./missing_right.ts";

/** What the platform says to a program without any right. */
async function said(wanted: string): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["eval", "--no-config"],
      `Deno.permissions.revokeSync({ name: "net" });
       Deno.permissions.revokeSync({ name: "sys" });
       Deno.permissions.revokeSync({ name: "write" });
       Deno.permissions.revokeSync({ name: "read" });
       try { await ${wanted} } catch (error) { console.log(error.message) }`,
    ],
  }).output();
  return new TextDecoder().decode(stdout).trim();
}

Deno.test("the platform's advice about rights never reaches a user", async () => {
  const report = "); please report it";
  const right = "the program did not give itself a right that it needs (";
  const cases = {
    'Deno.connect({ hostname: "127.0.0.1", port: 1 })': 'net "127.0.0.1:1"',
    "Deno.umask(0)": 'sys "umask"',
    'Deno.writeTextFile("/a,b", "")': 'write "/a,b"',
    "Deno.makeTempDir()": "write <TMP>",
    'Deno.connect({ transport: "unix", path: "/a" })': 'read "/a"',
  };
  for (const [wanted, what] of Object.entries(cases)) {
    const words = await said(wanted);
    assertEquals(tellsMissingRight(words), true, words);
    assertEquals(
      asFaultOfOurs(`Cannot try: ${words} (twice: ${words})`),
      `Cannot try: ${right}${what}${report} (twice: ${right}${what}${report})`,
    );
  }
});

Deno.test("other sentences stay as they are", () => {
  const sentence = "Cannot connect: Requires a certificate; run again";
  assertEquals(tellsMissingRight(sentence), false);
  assertEquals(asFaultOfOurs(sentence), sentence);
});
