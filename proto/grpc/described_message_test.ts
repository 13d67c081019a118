import type { PresentMessage, WholeMessage } from "./described_message.ts";

// What the compiler refuses is what fails here.

const PACKAGES = {
  "a.b": {
    Kind: { values: { NONE: 0 } },
    Whole: {
      oneofs: { choice: { oneof: ["one", "other"] } },
      fields: {
        wide: { type: "int64", id: 1 },
        bytes: { type: "bytes", id: 2 },
        part: { type: "a.b.Whole.Part", id: 3 },
        parts: { rule: "repeated", type: "a.b.Whole.Part", id: 4 },
        kinds: { keyType: "string", type: "a.b.Kind", id: 5 },
        one: { type: "a.b.Whole", id: 6 },
        other: { type: "bool", id: 7 },
      },
      nested: { Part: { fields: { text: { type: "string", id: 1 } } } },
    },
  },
} as const;

type Present = PresentMessage<typeof PACKAGES, "a.b.Whole">;
type Whole = WholeMessage<typeof PACKAGES, "a.b.Whole">;

const DEFAULTS = { part: null, parts: [], kinds: {} } as const;

Deno.test("a message has what its descriptor says, present or whole", () => {
  const bytes = new Uint8Array(0);
  const present: Present = { wide: 1, part: { text: "x" }, kinds: { a: 0 } };
  const whole: Whole = { wide: "1", bytes, ...DEFAULTS, other: true };
  void [present.one?.parts?.[0]?.text, whole.one?.wide, whole.part?.text];
  // @ts-expect-error 64 bits are text where all fields are.
  void ({ wide: 1, bytes, ...DEFAULTS } satisfies Whole);
  // @ts-expect-error bytes have a default and are there.
  void ({ wide: "1", ...DEFAULTS } satisfies Whole);
  // @ts-expect-error No such field.
  void ({ wid: 1 } satisfies Present);
  // @ts-expect-error An enum is a number.
  void ({ kinds: { a: "NONE" } } satisfies Present);
});
