import { assert, assertEquals } from "@std/assert";
import { IdList } from "./id_list.ts";

/** Counts how often anybody looks at an id. */
class Item {
  static looks = 0;
  readonly #id: string;

  constructor(id: string) {
    this.#id = id;
  }

  get id(): string {
    Item.looks++;
    return this.#id;
  }
}

const COUNT = 10_000;

Deno.test("ids that a peer chose alike are looked up as quickly as others", () => {
  const digits = (at: number) => at.toString(16).padStart(8, "0");
  for (
    const idOf of [
      (at: number) => `${digits(at + 2 ** 28)}00abcdef`,
      (at: number) => `f00dcafe${digits(at)}`,
    ]
  ) {
    const list = new IdList<Item>();
    const items = Array.from({ length: COUNT }, (_, at) => new Item(idOf(at)));
    const places = items.map((item) => list.add(item));
    Item.looks = 0;
    for (let at = 0; at < COUNT; at++) {
      assertEquals(list.find(idOf(at)), items[at]);
    }
    assert(Item.looks < 3 * COUNT, `it looked ${Item.looks} times`);
    for (const [at, item] of items.entries()) {
      assert(list.remove(item, places[at]!));
      assertEquals(list.find(idOf(at)), undefined);
    }
    assertEquals(list.size, 0);
  }
});
