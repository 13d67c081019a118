import { assertEquals, assertStrictEquals } from "@std/assert";
import { HpackDecoder } from "./decoder.ts";
import { EncoderHistory, HISTORY_LISTS_MAX, HpackEncoder } from "./encoder.ts";
import type { HeaderField } from "./header_field.ts";

type List = readonly HeaderField[];

const list = (fields: Readonly<Record<string, string>>): List =>
  Object.freeze(
    Object.entries(fields).map(([name, value]) => ({ name, value })),
  );

const HEAD = list({ ":status": "200", "content-type": "application/grpc" });
const OTHER_HEAD = list({ ":status": "200", "server": "another" });
const TRAILERS = list({ "grpc-status": "0" });
const LONG = list({ "x-name": "a value that is worth an entry" });

/** What one encoder makes of `lists`, each block a copy. */
function blocksOf(encoder: HpackEncoder, lists: readonly List[]) {
  return lists.map((fields) => encoder.encode(fields).slice());
}

/** Open lists are never shared, so this encoder works alone. */
function blocksAlone(lists: readonly List[]) {
  return blocksOf(new HpackEncoder(), lists.map((fields) => [...fields]));
}

Deno.test("encoders that begin alike write what each would have written alone", () => {
  const conversations = [
    [HEAD, TRAILERS],
    [HEAD, TRAILERS],
    [HEAD, TRAILERS, HEAD, TRAILERS, HEAD, TRAILERS, HEAD],
    [OTHER_HEAD, TRAILERS],
    [HEAD, LONG, TRAILERS, LONG],
    [HEAD, [...LONG], TRAILERS],
    [HEAD, LONG, TRAILERS, LONG],
    [HEAD, TRAILERS, HEAD, TRAILERS, HEAD, TRAILERS, HEAD],
  ];
  for (const lists of conversations) {
    const blocks = blocksOf(new HpackEncoder(), lists);
    assertEquals(blocks, blocksAlone(lists));
    const decoder = new HpackDecoder();
    const decoded = blocks.map((block) => decoder.decode(block));
    assertEquals(
      decoded,
      lists.map((fields) => ({ tooLarge: false, fields })),
    );
  }
});

Deno.test("encoders on the same way do not disturb each other", () => {
  const [one, other] = [new HpackEncoder(), new HpackEncoder()];
  const lists = [HEAD, TRAILERS, LONG];
  const alone = blocksAlone(lists);
  for (const [index, fields] of lists.entries()) {
    assertEquals(one.encode(fields).slice(), alone[index]);
    assertEquals(other.encode(fields).slice(), alone[index]);
  }
});

Deno.test("a peer's table size is obeyed wherever the encoder is", () => {
  for (let before = 0; before < 3; before++) {
    const lists = [HEAD, TRAILERS, LONG, TRAILERS];
    const encode = (each: (fields: List) => List) => {
      const encoder = new HpackEncoder();
      const decoder = new HpackDecoder();
      return lists.map((fields, index) => {
        if (index === before) encoder.setPeerTableSize(64);
        const block = encoder.encode(each(fields)).slice();
        assertEquals(decoder.decode(block), { tooLarge: false, fields });
        return block;
      });
    };
    assertEquals(encode((it) => it), encode((it) => [...it]));
  }
});

Deno.test("what it ends with is the table of all that was written", () => {
  const lists = [HEAD, TRAILERS, LONG];
  const alone = new HpackEncoder();
  for (const fields of lists) alone.encode([...fields]);
  for (let again = 0; again < 2; again++) {
    const encoder = new HpackEncoder();
    for (const fields of lists) encoder.encode(fields);
    assertEquals(encoder.tableBytes, alone.tableBytes);
  }
});

Deno.test("a history ends after a few lists", () => {
  let history = new EncoderHistory();
  for (let number = 0; number < HISTORY_LISTS_MAX; number++) {
    history.add(HEAD, Uint8Array.of(number));
    const step = history.step(HEAD)!;
    assertEquals(step.bytes, Uint8Array.of(number));
    history = step.after;
  }
  history.add(HEAD, Uint8Array.of(9));
  assertStrictEquals(history.step(HEAD), undefined);
});

Deno.test("secrets and open lists are not kept", () => {
  const history = new EncoderHistory();
  const lists: List[] = [
    [...HEAD],
    list({ authorization: "Bearer secret" }),
    Object.freeze([{ name: "x-key", value: "secret", neverIndex: true }]),
  ];
  for (const fields of lists) {
    history.add(fields, Uint8Array.of(1));
    assertStrictEquals(history.step(fields), undefined);
  }
});
