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
    assertEquals(
      refusal(() => new DocumentMap(said, ["m"], ["a"])),
      `m.${name}: there is no such field; wanted one of a`,
    );
    assertEquals(new DocumentMap(said, []).text(name), "x");
  }
});

Deno.test("what a field says is one type or a refusal with its place", () => {
  const map = new DocumentMap(
    { n: 7, t: "x", l: ["a", 1], d: "1m30s", none: null, m: { k: true } },
    ["list", 2],
  );
  assertEquals(map.text("none"), undefined);
  assertEquals(map.number("n", 1, 9), 7);
  assertEquals(map.duration("d"), 90_000);
  assertEquals(map.map("m")?.flag("k"), true);
  assertEquals(map.list("none"), []);
  assertEquals(map.texts("none"), undefined);
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [read: () => unknown, says: string])[] = [
    [() => map.text("n"),            "list[2].n: saw a number, wanted a text; quote it if needed"],
    [() => map.number("n", 1, 6),    "list[2].n: saw 7, wanted 1 to 6"],
    [() => map.flag("t"),            "list[2].t: saw a string, wanted true or false"],
    [() => map.texts("l"),           "list[2].l[1]: saw a number, wanted a text; quote it if needed"],
    [() => map.list("t"),            "list[2].t: saw a string, wanted a list"],
    [() => map.duration("t"),        'list[2].t: saw "x", wanted a time such as 500ms, 10s or 1m30s'],
    [() => map.word("t", ["y"]),     'list[2].t: saw "x", wanted y'],
    [() => map.map("m", ["j"]),      "list[2].m.k: there is no such field; wanted one of j"],
    [() => new DocumentMap(null, []), "the document: saw nothing, wanted a map"],
  ];
  for (const [read, says] of cases) assertEquals(refusal(read), says);
});

Deno.test("where saying nothing is a mistake, all of it is refused", () => {
  const refused = (value: unknown) =>
    refusal(() => new DocumentMap(value, []).refuseEmpty());
  assertEquals(refused({ deny: null }).split(",")[0], "deny: saw nothing");
  assertEquals(refused({ name: "" }).split(",")[0], "name: saw an empty text");
  assertEquals(
    refused({ allow: ["a", ""] }).split(",")[0],
    "allow[1]: saw an empty text",
  );
  new DocumentMap({ a: [], b: 0, c: false }, []).refuseEmpty();
});

Deno.test("a sentence quotes no more than it takes to know a text by", () => {
  const long = "x".repeat(1_000_000);
  const map = new DocumentMap({ [long]: 1, word: long, time: long }, []);
  for (
    const read of [
      () => map.word("word", ["a"]),
      () => map.duration("time"),
      () => map.text(long),
      () => new DocumentMap({ [long]: 1 }, [], ["a"]),
    ]
  ) {
    const says = refusal(read);
    assertEquals(says.length < 200, true, says.slice(0, 200));
  }
});
