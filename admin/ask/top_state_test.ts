import { assertEquals } from "@std/assert";
import { CONDUITS_ANSWER } from "../../tests/support/rigs/ask_answers.ts";
import {
  chosenRow,
  firstState,
  keysOf,
  press,
  type TopState,
} from "./top_state.ts";

const { conduits } = CONDUITS_ANSWER;
const FIRST = firstState("rate", "");

/** What typing leaves, and the last thing that was wanted. */
function typed(text: string, from: TopState = FIRST) {
  let state = from;
  let effect: unknown;
  for (const key of keysOf(text)) {
    const pressed = press(state, key, conduits, 2);
    ({ state } = pressed);
    effect = pressed.effect;
  }
  return { state, effect };
}

Deno.test("keys are read from sequences, also with modifiers", () => {
  const names = keysOf("\x1b[A\x1b[1;5B\x1bOH\x1b[6~\x1b\r\x7f\x03q節")
    .map((key) => "name" in key ? key.name : key.character);
  assertEquals(names, [
    ...["up", "down", "home", "page-down", "escape", "enter", "backspace"],
    ...["interrupt", "q", "節"],
  ]);
});

Deno.test("sequences and control characters that nobody knows are nothing", () => {
  assertEquals(keysOf("\x1b[200~\x1b[<0;1;1M\x1b[?1u\x1b[99~\x01\x00"), []);
});

Deno.test("arrows choose, and stay within the list", () => {
  assertEquals(typed("\x1b[B").state.chosenId, conduits[1]!.id);
  assertEquals(typed("\x1b[B\x1b[B\x1b[B\x1b[B").state.chosenRow, 2);
  assertEquals(typed("\x1b[A").state.chosenRow, 0);
  assertEquals(typed("\x1b[6~").state.chosenRow, 2);
  assertEquals(typed("\x1b[F\x1b[H").state.chosenRow, 0);
});

Deno.test("the choice stays with its connection when rows move, or near it", () => {
  const { state } = typed("\x1b[B");
  assertEquals(chosenRow(state, [...conduits].reverse()), 1);
  assertEquals(chosenRow(state, [conduits[1]!, conduits[0]!]), 0);
  assertEquals(chosenRow(state, [conduits[0]!]), 0);
  assertEquals(chosenRow(state, []), 0);
});

Deno.test("letters and left and right sort, and ask anew", () => {
  assertEquals(typed("b").state.sort, "bytes");
  assertEquals(typed("b").effect, { kind: "ask" });
  assertEquals(typed("\x1b[C").state.sort, "bytes");
  assertEquals(typed("\x1b[D").state.sort, "queue");
});

Deno.test("k ends a connection after a y, and after nothing else", () => {
  assertEquals(typed("k").effect, undefined);
  assertEquals(typed("ky").effect, { kind: "kill", id: conduits[0]!.id });
  for (const other of ["n", "\r", " ", "k", "\x1b", "q"]) {
    const { state, effect } = typed(`k${other}`);
    assertEquals(effect, undefined, other);
    assertEquals(state.said, "nothing was ended");
  }
  // Ctrl-C is always the way out.
  assertEquals(typed("k\x03").effect, { kind: "quit" });
});

Deno.test("what is to be ended is what was asked about, wherever it is now", () => {
  const { state } = typed("k");
  const moved = press(state, { character: "y" }, [], 2);
  assertEquals(moved.effect, { kind: "kill", id: conduits[0]!.id });
});

Deno.test("f takes a node's name, in which letters are no commands", () => {
  const { state, effect } = typed("fquark\x7f\x7fy-7\r");
  assertEquals(state.node, "quay-7");
  assertEquals(state.mode, { kind: "list" });
  assertEquals(effect, { kind: "ask" });
  assertEquals(typed("fedge\x1b", FIRST).state.node, "");
  assertEquals(typed("\x1b", state).state.node, "");
});

Deno.test("q and Ctrl-C quit, and help goes back by any key", () => {
  assertEquals(typed("q").effect, { kind: "quit" });
  assertEquals(typed("?\x03").effect, { kind: "quit" });
  assertEquals(typed("?q").state.mode, { kind: "list" });
  assertEquals(typed("?q").effect, undefined);
});
