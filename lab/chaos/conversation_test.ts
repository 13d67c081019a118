import { assertEquals } from "@std/assert";
import { Conversation } from "./conversation.ts";
import type { Wire } from "./entrance.ts";
import { Ledger, type Path } from "./ledger.ts";

const PATH: Path = { protocol: "grpc", target: "site" };
const MANNER = { pieceBytes: 100, pauseMs: 1, windowBytes: 1_000 };

/** A target that echoes as it is told to. */
class Echo implements Wire {
  readonly #chunks: Uint8Array[] = [];
  #isEnded = false;
  #wake = () => {};
  echoed = 0;

  /** @param spoil What becomes of each piece; `undefined`: the end. */
  constructor(
    readonly spoil: (piece: Uint8Array, at: number) => Uint8Array | undefined,
  ) {}

  write(bytes: Uint8Array): Promise<number> {
    const piece = this.spoil(bytes.slice(), this.echoed);
    this.echoed += bytes.length;
    if (piece === undefined) this.#isEnded = true;
    else this.#chunks.push(piece);
    this.#wake();
    return Promise.resolve(bytes.length);
  }

  async read(buffer: Uint8Array): Promise<number | null> {
    while (this.#chunks.length === 0) {
      if (this.#isEnded) return null;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const chunk = this.#chunks.shift()!;
    buffer.set(chunk);
    return chunk.length;
  }

  closeWrite(): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  close(): void {
    this.#isEnded = true;
    this.#wake();
  }
}

/** Some pieces there and back. @returns Whether that went well. */
async function talk(echo: Echo, ledger: Ledger): Promise<boolean> {
  const talk = new Conversation(PATH, echo, MANNER, 42, ledger);
  return await talk.talk(() => echo.echoed >= 500);
}

Deno.test("what comes back as it went is counted", async () => {
  const ledger = new Ledger();
  assertEquals(await talk(new Echo((piece) => piece), ledger), true);
  assertEquals([ledger.bytes, ledger.breaks.length], [500, 0]);
});

Deno.test("one wrong byte is found, and where", async () => {
  const ledger = new Ledger();
  const echo = new Echo((piece, at) => {
    if (at === 300) piece[17]! ^= 1;
    return piece;
  });
  assertEquals(await talk(echo, ledger), false);
  assertEquals(ledger.wrong.map(({ offset }) => offset), [317]);
});

Deno.test("an end that nobody asked for is a break, with nothing under way as well", async () => {
  const ledger = new Ledger();
  await talk(new Echo((piece, at) => at < 200 ? piece : undefined), ledger);
  const silent = { ...MANNER, windowBytes: 0 };
  const echo = new Echo((piece) => piece);
  const quiet = new Conversation(PATH, echo, silent, 1, ledger);
  setTimeout(() => echo.close(), 5);
  await quiet.talk(() => false);
  assertEquals(
    ledger.breaks.map(({ lostBytes, isEof }) => [lostBytes, isEof]),
    [[100, true], [0, true]],
  );
});
