/**
 * The examples of RFC 7541 Appendix C, byte by byte.
 *
 * @module
 */

import { assertEquals, assertThrows } from "@std/assert";
import { NaiveHpackDecoder } from "../../tests/support/watch/naive_hpack.ts";
import { HpackDecoder } from "./decoder.ts";
import { HpackEncoder } from "./encoder.ts";
import { type HeaderField, HpackError } from "./header_field.ts";

interface Step {
  readonly hex: string;
  /** `name: value` lines. */
  readonly list: readonly string[];
  /** The dynamic table afterwards, newest first, and its size. */
  readonly table: readonly string[];
  readonly bytes: number;
}

const AUTHORITY = ":authority: www.example.com";
const NO_CACHE = "cache-control: no-cache";
const CUSTOM = "custom-key: custom-value";
const GET = [":method: GET", ":scheme: http", ":path: /", AUTHORITY];
const GET_SECURE = [
  ":method: GET",
  ":scheme: https",
  ":path: /index.html",
  AUTHORITY,
];

/** C.3 and C.4 differ in the bytes alone. */
function requests(first: string, second: string, third: string): Step[] {
  return [
    { hex: first, list: GET, table: [AUTHORITY], bytes: 57 },
    {
      hex: second,
      list: [...GET, NO_CACHE],
      table: [NO_CACHE, AUTHORITY],
      bytes: 110,
    },
    {
      hex: third,
      list: [...GET_SECURE, CUSTOM],
      table: [CUSTOM, NO_CACHE, AUTHORITY],
      bytes: 164,
    },
  ];
}

const PRIVATE = "cache-control: private";
const DATE = "date: Mon, 21 Oct 2013 20:13:21 GMT";
const LATER = "date: Mon, 21 Oct 2013 20:13:22 GMT";
const LOCATION = "location: https://www.example.com";
const GZIP = "content-encoding: gzip";
const COOKIE =
  "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

/** C.5 and C.6, with a table of 256 bytes. */
function responses(first: string, second: string, third: string): Step[] {
  return [
    {
      hex: first,
      list: [":status: 302", PRIVATE, DATE, LOCATION],
      table: [LOCATION, DATE, PRIVATE, ":status: 302"],
      bytes: 222,
    },
    {
      hex: second,
      list: [":status: 307", PRIVATE, DATE, LOCATION],
      table: [":status: 307", LOCATION, DATE, PRIVATE],
      bytes: 222,
    },
    {
      hex: third,
      list: [":status: 200", PRIVATE, LATER, LOCATION, GZIP, COOKIE],
      table: [COOKIE, GZIP, LATER],
      bytes: 215,
    },
  ];
}

const C3 = requests(
  "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
  "8286 84be 5808 6e6f 2d63 6163 6865",
  "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
);
const C4 = requests(
  "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
  "8286 84be 5886 a8eb 1064 9cbf",
  "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
);
const C5 = responses(
  `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420
   3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77
   7777 2e65 7861 6d70 6c65 2e63 6f6d`,
  "4803 3330 37c1 c0bf",
  `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32
   3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a
   584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33
   3630 303b 2076 6572 7369 6f6e 3d31`,
);
const C6 = responses(
  `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81
   66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
  "4883 640e ffc1 c0bf",
  `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a
   839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36
   72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
);

function bytes(hex: string): Uint8Array {
  return Uint8Array.fromHex(hex.replaceAll(/\s/g, ""));
}

function fieldsOf(lines: readonly string[]): HeaderField[] {
  return lines.map((line) => {
    const colon = line.indexOf(": ");
    return { name: line.slice(0, colon), value: line.slice(colon + 2) };
  });
}

/** What the indexes from 62 on refer to. */
function tableOf(decoder: HpackDecoder, length: number): unknown {
  const all = Uint8Array.from({ length }, (_, age) => 0x80 | (62 + age));
  return decoder.decode(all);
}

const SERIES = { C3, C4, C5, C6 };

for (const [name, steps] of Object.entries(SERIES)) {
  const tableSizeMax = steps === C3 || steps === C4 ? 4096 : 256;

  Deno.test(`${name} decodes to its lists and its tables`, () => {
    const decoder = new HpackDecoder({ tableSizeMax });
    const naive = new NaiveHpackDecoder(tableSizeMax);
    for (const step of steps) {
      const fields = fieldsOf(step.list);
      assertEquals(decoder.decode(bytes(step.hex)), {
        tooLarge: false,
        fields,
      });
      assertEquals(naive.decode(bytes(step.hex)), fields);
      assertEquals(decoder.tableBytes, step.bytes);
      assertEquals(naive.table, fieldsOf(step.table));
      assertEquals(tableOf(decoder, step.table.length), {
        tooLarge: false,
        fields: fieldsOf(step.table),
      });
      const beyond = Uint8Array.of(0x80 | (62 + step.table.length));
      assertThrows(
        () => decoder.decode(beyond),
        HpackError,
        "index",
      );
    }
  });
}

Deno.test("C.2: the four representations decode, each with its own effect", () => {
  const examples: [string, HeaderField, number][] = [
    [
      "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
      { name: "custom-key", value: "custom-header" },
      55,
    ],
    [
      "040c 2f73 616d 706c 652f 7061 7468",
      { name: ":path", value: "/sample/path" },
      0,
    ],
    [
      "1008 7061 7373 776f 7264 0673 6563 7265 74",
      { name: "password", value: "secret", neverIndex: true },
      0,
    ],
    ["82", { name: ":method", value: "GET" }, 0],
  ];
  for (const [hex, field, tableBytes] of examples) {
    const decoder = new HpackDecoder();
    const fields = [field];
    assertEquals(decoder.decode(bytes(hex)), { tooLarge: false, fields });
    assertEquals(decoder.tableBytes, tableBytes);
    assertEquals(new NaiveHpackDecoder().decode(bytes(hex)), fields);
  }
});

Deno.test("C.4 encodes to the very bytes", () => {
  const encoder = new HpackEncoder();
  for (const step of C4) {
    const block = encoder.encode(fieldsOf(step.list));
    assertEquals(block.toHex(), bytes(step.hex).toHex());
    assertEquals(encoder.tableBytes, step.bytes);
  }
});

Deno.test("C.2.3 encodes as never indexed, coded where Appendix C is plain", () => {
  const field = { name: "password", value: "secret", neverIndex: true };
  const block = new HpackEncoder().encode([field]);
  assertEquals(block.toHex(), "1086ac684783d9278441496153");
  assertEquals(new NaiveHpackDecoder().decode(block), [field]);
});
