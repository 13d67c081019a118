import { assertEquals } from "@std/assert";
import { isMissingGoodbye, type Meeting } from "./goodbye.ts";
import { ProgramError } from "./run_program.ts";

const MEETING: Meeting = {
  server: "konnectivity",
  protocol: "http-connect",
  frontend: { transport: "tcp" },
};
const LOSS =
  "tunnel: The connection was lost: TLS connection was cut off without a goodbye";

function ended(code: number, said: string): ProgramError {
  return new ProgramError("deno", code, said, new Uint8Array());
}

Deno.test("a missing goodbye is Konnectivity's where it closes beside a write", () => {
  assertEquals(isMissingGoodbye(ended(5, LOSS), MEETING), true);
});

Deno.test("a missing goodbye of any other server, route or kind is a failure", () => {
  const elsewhere: readonly Meeting[] = [
    { ...MEETING, server: "ours" },
    { ...MEETING, protocol: "grpc" },
    { ...MEETING, frontend: { transport: "uds" } },
  ];
  for (const meeting of elsewhere) {
    assertEquals(isMissingGoodbye(ended(5, LOSS), meeting), false);
  }
  const others: readonly unknown[] = [
    ended(4, LOSS),
    ended(0, LOSS),
    ended(5, "The connection was lost: connection timed out"),
    new Error(LOSS),
  ];
  for (const error of others) {
    assertEquals(isMissingGoodbye(error, MEETING), false);
  }
});
