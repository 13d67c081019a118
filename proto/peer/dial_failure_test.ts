import { assertEquals } from "@std/assert";
import { codeNamed, codeOfWords } from "./dial_error.ts";

Deno.test("words that came without a code are those of Go's net package", () => {
  const cases: Record<string, string | undefined> = {
    "dial tcp 127.0.0.1:9: connect: connection refused": "TUN503",
    "dial tcp 10.0.0.7:5432: i/o timeout": "TUN502",
    "dial tcp: lookup db on 10.0.0.1:53: no such host": "TUN505",
    "dial tcp 10.0.0.7:1: socket: too many open files": "TUN513",
    "dial sctp: unknown network sctp": "TUN101",
    "Cannot dial tcp 10.0.0.7:1: refused by the agent's rule x": "TUN603",
    "Cannot dial tcp a:1: refused, no rule of the agent allows it": "TUN603",
    "something else": undefined,
  };
  for (const [words, code] of Object.entries(cases)) {
    assertEquals(codeOfWords("endpoint", words), code, words);
  }
  assertEquals(codeOfWords("no-agent", "connection refused"), undefined);
});

Deno.test("a peer names only codes that there are", () => {
  assertEquals(codeNamed("TUN503"), "TUN503");
  assertEquals(codeNamed("TUN000"), undefined);
  assertEquals(codeNamed("constructor"), undefined);
  assertEquals(codeNamed(undefined), undefined);
});
