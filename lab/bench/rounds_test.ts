import { assertEquals } from "@std/assert";
import { sequence } from "./rounds.ts";

Deno.test("every peer runs next to a run of A", () => {
  for (const round of [0, 1]) {
    for (let peers = 0; peers <= 6; peers++) {
      const places = Array.from({ length: peers }, (_, place) => place);
      const groups = sequence(places, round);
      for (const place of places) {
        const group = groups.find((each) => each.includes(place))!;
        const distance = group.indexOf(place) - group.indexOf("A");
        assertEquals(Math.abs(distance), 1);
      }
    }
  }
});

Deno.test("one peer gives A B A B, two change sides each round", () => {
  assertEquals([sequence([0], 0), sequence([0], 1)], [[["A", 0]], [["A", 0]]]);
  assertEquals([sequence([0, 1], 0), sequence([0, 1], 1)], [
    [[0, "A", 1]],
    [[1, "A", 0]],
  ]);
});

Deno.test("without anybody to compare with, A runs alone", () => {
  assertEquals(sequence([], 0), [["A"]]);
});
