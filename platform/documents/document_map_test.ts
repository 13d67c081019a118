import { assertEquals, assertThrows } from "@std/assert";
import { DocumentMap, FieldError } from "./document_map.ts";

function refusal(read: () => unknown): string {
  return assertThrows(read, FieldError).message;
}

Deno.test("a map has what was written in it, and nothing of Object.prototype", () => {
  const map = new DocumentMap({ a: 1 }, []);
  for (
    const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]
  ) {
    assertEquals(map.has(name), false, name);
    assertEquals(map.value(name), undefined, name);
    assertEquals(map.text(name), undefined, name);
    const said = JSON.parse(`{"${name}": "x"}`);
    assertEquals(new DocumentMap(said, []).text(name), "x");
  }
});

Deno.test("what a field says is one type or a refusal with its place", () => {
  const map = new DocumentMap(
    { n: 7, t: "x", l: ["a", 1], none: null, m: { k: true } },
    ["list", 2],
  );
  assertEquals(map.text("none"), undefined);
  assertEquals(map.map("m")?.flag("k"), true);
  assertEquals(map.list("none"), []);
  assertEquals(map.texts("none"), undefined);
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [read: () => unknown, says: string])[] = [
    [() => map.text("n"),            "list[2].n: saw a number, wanted a text; quote it if needed"],
    [() => map.flag("t"),            "list[2].t: saw a string, wanted true or false"],
    [() => map.texts("l"),           "list[2].l[1]: saw a number, wanted a text; quote it if needed"],
    [() => map.list("t"),            "list[2].t: saw a string, wanted a list"],
    [() => new DocumentMap(null, []), "the document: saw nothing, wanted a map"],
  ];
  for (const [read, says] of cases) assertEquals(refusal(read), says);
});
