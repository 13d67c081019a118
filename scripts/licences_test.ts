import { assertEquals } from "@std/assert";
import { dependencies, problemsOf } from "./licences.ts";

const sha = { integrity: "sha512-x" };

Deno.test("packages are named with scope and version, without their peers", () => {
  const lock = { npm: { "@a/b@1.2.3_c@4.0.0": sha, "d@5.0.0-rc.1": sha } };
  const found = dependencies(lock, (name, version) => `${name} ${version}`);
  assertEquals(found.map(({ licence }) => licence), [
    "@a/b 1.2.3",
    "d 5.0.0-rc.1",
  ]);
});

Deno.test("copyleft, unknown and unpinned packages are reported", () => {
  const lock = {
    npm: {
      "mit@1.0.0": sha,
      "either@1.0.0": sha,
      "gpl@1.0.0": sha,
      "none@1.0.0": sha,
      "loose@1.0.0": {},
    },
    jsr: { "@x/y@1.0.0": {} },
  };
  const licences: Readonly<Record<string, string>> = {
    mit: "MIT",
    either: "(GPL-3.0 OR MIT)",
    gpl: "MIT AND GPL-3.0",
    none: "",
    loose: "ISC",
  };
  const packages = dependencies(lock, (name) => licences[name]!);
  assertEquals(problemsOf(lock, packages), [
    "@x/y@1.0.0 is not from npm: say here how its licence is known",
    "gpl@1.0.0 has the licence MIT AND GPL-3.0",
    "none@1.0.0 has the licence (none)",
    "loose@1.0.0 has no sha512 integrity in deno.lock",
  ]);
});
