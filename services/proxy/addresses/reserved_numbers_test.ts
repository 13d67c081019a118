import { assert, assertEquals } from "@std/assert";
import { forAll, type Prng } from "../../../tests/support/memory/prng.ts";
import { GONE_MAX, GONE_MS, ReservedNumbers } from "./reserved_numbers.ts";
import { LocalAddressBook } from "./local_address.ts";
import { portKey } from "../listeners/proxied_port.ts";

const RANGE = { kind: "ports", host: "127.0.0.1" } as const;

const portOf = (name: string) => ({
  key: portKey(`default/${name}`, ""),
  service: `default/${name}`,
  servicePort: { name: "", port: 80, protocol: "tcp" },
} as const);

function shuffled<Item>(items: Iterable<Item>, prng: Prng): Item[] {
  return [...items].map((item) => ({ item, at: prng.below(1 << 20) }))
    .sort((one, other) => one.at - other.at)
    .map(({ item }) => item);
}

/** Two names that make the same port of ten thousand. */
const [ONE, OTHER] = ["svc-25", "svc-780"];

Deno.test("two names that collide do not swap when the proxy starts again", () => {
  const all = { ...RANGE, first: 20_000, last: 29_999 };
  const collisions: string[] = [];
  const first = new ReservedNumbers();
  const book = new LocalAddressBook(
    all,
    first,
    ({ owner, holder }) => collisions.push(`${owner} ${holder}`),
  );
  const kept = book.place(portOf(OTHER))!.port;
  const displaced = book.place(portOf(ONE))!.port;
  assertEquals(displaced, kept + 1);
  assertEquals(collisions, [`${portOf(ONE).key} ${portOf(OTHER).key}`]);
  assertEquals(book.displacedBy(portOf(ONE)), portOf(OTHER).key);
  assertEquals(book.displacedBy(portOf(OTHER)), undefined);

  const again = new LocalAddressBook(all, new ReservedNumbers(first.all));
  assertEquals(again.place(portOf(ONE))!.port, displaced);
  assertEquals(again.place(portOf(OTHER))!.port, kept);
});

Deno.test("no service changes its address while others come, go and restart", () =>
  forAll(50, (prng) => {
    const all = { ...RANGE, first: 20_000, last: 20_000 + 399 };
    const names = Array.from({ length: 300 }, (_, at) => `svc-${at}`);
    let kept = new ReservedNumbers();
    let book = new LocalAddressBook(all, kept);
    const there = new Set<string>();
    const ports = new Map<string, number>();
    for (let step = 0; step < 600; step++) {
      const name = prng.pick(names);
      if (prng.below(50) === 0) {
        // The file has what was there, in any order, and a new proxy reads it.
        kept = new ReservedNumbers(shuffled(kept.all, prng));
        book = new LocalAddressBook(all, kept);
        for (const known of shuffled(there, prng)) book.place(portOf(known));
      } else if (there.has(name)) {
        there.delete(name);
        book.release(portOf(name));
      } else {
        there.add(name);
        const { port } = book.place(portOf(name))!;
        assertEquals(port, ports.get(name) ?? port, name);
        ports.set(name, port);
      }
      for (const known of there) {
        assertEquals(book.place(portOf(known))!.port, ports.get(known));
      }
    }
    assertEquals(new Set(ports.values()).size, ports.size);
  }));

Deno.test("a full range takes back what was kept for who is gone longest", () => {
  let nowMs = 0;
  const kept = new ReservedNumbers([], () => nowMs++);
  const book = new LocalAddressBook({ ...RANGE, first: 1, last: 2 }, kept);
  const one = book.place(portOf("a"))!.port;
  const other = book.place(portOf("b"))!.port;
  assertEquals(book.place(portOf("c")), undefined);
  book.release(portOf("b"));
  book.release(portOf("a"));
  assertEquals(book.place(portOf("c"))!.port, other);
  assertEquals(book.place(portOf("a"))!.port, one);
});

Deno.test("who is gone is forgotten after a while, or when too many are", () => {
  let nowMs = 0;
  const kept = new ReservedNumbers([], () => nowMs);
  kept.give("old", 1);
  kept.leave("old");
  nowMs = GONE_MS + 1;
  kept.give("new", 2);
  kept.leave("new");
  assertEquals([kept.ownerOf(1), kept.ownerOf(2)], [undefined, "new"]);
  for (let number = 3; number < GONE_MAX + 10; number++) {
    kept.give(`owner ${number}`, number);
    kept.leave(`owner ${number}`);
  }
  assertEquals([...kept.all].length, GONE_MAX);
  assertEquals(kept.ownerOf(2), undefined);
});

Deno.test("of two that claim one number one has it", () => {
  const twins = [{ owner: "a", number: 7 }, { owner: "b", number: 7 }];
  const kept = new ReservedNumbers(twins);
  const owners = [kept.claim("a"), kept.claim("b")];
  assertEquals(owners.filter((number) => number === 7).length, 1);
  assert(["a", "b"].includes(kept.ownerOf(7)!));
});
