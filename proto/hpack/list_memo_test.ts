import { assertEquals } from "@std/assert";
import { type HeaderField, ListMemo } from "./header_field.ts";

const list = (value: string): readonly HeaderField[] =>
  Object.freeze([{ name: "x", value }]);

Deno.test("a frozen list is remembered as the object that it is", () => {
  const memo = new ListMemo<number>();
  const one = list("1");
  memo.set(one, 1);
  assertEquals(memo.get(one), 1);
  assertEquals(memo.get(list("1")), undefined);
  memo.clear();
  assertEquals(memo.get(one), undefined);
});

Deno.test("a list that may change is not remembered", () => {
  const memo = new ListMemo<number>();
  const open = [{ name: "x", value: "1" }];
  memo.set(open, 1);
  assertEquals(memo.get(open), undefined);
});

Deno.test("of five lists the last four are remembered", () => {
  const memo = new ListMemo<number>();
  const lists = [0, 1, 2, 3, 4].map((number) => list(String(number)));
  lists.forEach((each, index) => memo.set(each, index));
  assertEquals(lists.map((each) => memo.get(each)), [undefined, 1, 2, 3, 4]);
});
