import { assertEquals, assertStringIncludes } from "@std/assert";
import { ExitCode } from "./program/exit_codes.ts";
import { SERVICE_COMMAND } from "./service_register.ts";
import { ran } from "../tests/support/program/command_line.ts";

/** What the command says to flags that it refuses. */
async function refusal(...argv: string[]): Promise<string> {
  const { code, errors } = await ran(SERVICE_COMMAND.run, argv);
  assertEquals(code, ExitCode.USAGE, errors);
  return errors;
}

Deno.test("what cannot be registered is refused before etcd is asked", async () => {
  const etcd = "--etcd=http://10.0.0.1:2379";
  const db = ["register", "db", "--endpoint=10.0.0.7:5432"];
  const cases: readonly (readonly [words: string, ...argv: string[]])[] = [
    ["wants register", etcd],
    ["wanted tunnel service register NAME", "register", etcd],
    ["Cannot register 0 endpoints", "register", "db", etcd],
    ["wanted HOST:PORT", "register", "db", "--endpoint=10.0.0.7", etcd],
    ["wanted an IP address", "register", "db", "--endpoint=1.2.3:4", etcd],
    [
      "is no NAMESPACE/NAME",
      "register",
      "a/b/c",
      "--endpoint=10.0.0.7:1",
      etcd,
    ],
    ["wanted direct, agent", ...db, "--via=moon", etcd],
    ["Cannot register without etcd", ...db],
    ["Cannot use etcd address", ...db, "--etcd=ftp://x"],
    ["wanted https://", ...db, etcd, "--etcd-ca-cert=ca.crt"],
  ];
  for (const [words, ...argv] of cases) {
    assertStringIncludes(await refusal(...argv), words);
  }
});
