import { assertEquals } from "@std/assert";
import { isIpv4Lookalike, plainName } from "./host_port.ts";

Deno.test("names whose last label is a number are addresses to some resolvers", () => {
  for (const name of ["127.1", "0x7f.1", "2130706433", "a.0x", "DB.0X1F"]) {
    assertEquals(isIpv4Lookalike(name), true, name);
  }
  for (const name of ["db", "1.db", "0x1g", "127.0.0.1.example", "a.1b", ""]) {
    assertEquals(isIpv4Lookalike(name), false, name);
  }
});

Deno.test("case and the last dot make no other name", () => {
  assertEquals(plainName("DB.Example."), "db.example");
  assertEquals(plainName("db.example.."), "db.example.");
});
