import { assert, assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { formatTimeout, parseTimeout } from "./call.ts";

Deno.test("every unit of grpc-timeout is read as milliseconds", () => {
  assertEquals(parseTimeout("2H"), 7_200_000);
  assertEquals(parseTimeout("3M"), 180_000);
  assertEquals(parseTimeout("4S"), 4_000);
  assertEquals(parseTimeout("5m"), 5);
  assertEquals(parseTimeout("2500u"), 2.5);
  assertEquals(parseTimeout("500000n"), 0.5);
  assertEquals(parseTimeout("0n"), 0);
  assertEquals(parseTimeout("99999999H"), 99_999_999 * 3_600_000);
});

Deno.test("what is no grpc-timeout is not read", () => {
  const broken = ["", "5", "m", "-5m", "+5m", "5 m", "5s", "5ms", "1.5S"];
  for (const text of [...broken, "123456789m", " 5m", "5m\n", "٥m"]) {
    assertEquals(parseTimeout(text), undefined, JSON.stringify(text));
  }
});

Deno.test("a timeout is written in the exactest unit of eight digits, rounded up", () => {
  assertEquals(formatTimeout(1_500), "1500m");
  assertEquals(formatTimeout(0.2), "1m");
  assertEquals(formatTimeout(99_999_999), "99999999m");
  assertEquals(formatTimeout(100_000_000), "100000S");
  assertEquals(formatTimeout(100_000_001), "100001S");
  assertEquals(formatTimeout(100_000_000 * 1_000), "1666667M");
  assertEquals(formatTimeout(1e13), "2777778H");
  assertEquals(formatTimeout(1e18), "99999999H");
  assertEquals(formatTimeout(0), "0m");
  assertEquals(formatTimeout(-5), "0m");
});

Deno.test("what is written is read back, never shorter and hardly longer", async () => {
  await forAll(200, (prng) => {
    const timeoutMs = (prng.below(2 ** 31) + 1) * 10 ** prng.below(5) / 100;
    const read = parseTimeout(formatTimeout(timeoutMs))!;
    assert(read >= timeoutMs && read <= timeoutMs * 1.001 + 1, `${timeoutMs}`);
  });
});
