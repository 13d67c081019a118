import { assertEquals } from "@std/assert";
import { compareVersions, versionIn } from "./software_version.ts";

Deno.test("versions are compared part by part, as numbers", () => {
  for (
    const [one, other, sign] of [
      ["0.1.0", "0.1.0", 0],
      ["0.9.0", "0.10.0", -1],
      ["1.0.0", "0.99.99", 1],
      ["0.1.1", "0.1.2", -1],
      ["1.0.0-rc1", "1.0.0", 0],
    ] as const
  ) {
    assertEquals(
      Math.sign(compareVersions(one, other)),
      sign,
      `${one} ${other}`,
    );
    assertEquals(Math.sign(compareVersions(other, one)), -sign + 0);
  }
});

Deno.test("only programs of ours have a version that can be compared", () => {
  assertEquals(versionIn("tunnel/0.1.0"), "0.1.0");
  assertEquals(versionIn("tunnel/0.1.0+g1234"), "0.1.0");
  for (
    const other of ["", "konnectivity/0.30.3", "my tunnel/0.1.0", "tunnel/1"]
  ) {
    assertEquals(versionIn(other), undefined);
  }
});
