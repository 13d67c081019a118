import { assertEquals } from "@std/assert";
import plugin, { FUNCTION_LINES_MAX } from "./lint_plugin.ts";

const PROTO_FILE = new URL("../proto/frames/a.ts", import.meta.url).pathname;
const PROTO_TEST = PROTO_FILE.replace("a.ts", "a_test.ts");
const HOST_FILE = new URL("../net/a.ts", import.meta.url).pathname;

function problemsIn(path: string, source: string): string[] {
  return Deno.lint.runPlugin(plugin, path, source)
    .map((diagnostic) => diagnostic.id);
}

function functionOf(lines: number): string {
  return `function f() {\n${"  f();\n".repeat(lines - 2)}}\n`;
}

Deno.test("a function of one screen passes and one line more does not", () => {
  assertEquals(problemsIn(HOST_FILE, functionOf(FUNCTION_LINES_MAX)), []);
  assertEquals(problemsIn(HOST_FILE, functionOf(FUNCTION_LINES_MAX + 1)), [
    "tunnel/function-length",
  ]);
});

Deno.test("a long method and a long arrow function are functions too", () => {
  const body = "\n".repeat(FUNCTION_LINES_MAX);
  const method = `class C { m() {${body}} }`;
  assertEquals(problemsIn(HOST_FILE, method), ["tunnel/function-length"]);
  const arrow = `const f = () => {${body}};`;
  assertEquals(problemsIn(HOST_FILE, arrow), ["tunnel/function-length"]);
});

/** Each is refused in one file, or in none, and never in a test. */
function judged(
  title: string,
  file: string,
  rules: readonly string[],
  sources: readonly string[],
): void {
  for (const source of sources) {
    Deno.test(`${title}: ${source.split("\n").at(-1)}`, () => {
      assertEquals(problemsIn(file, source), rules);
      assertEquals(problemsIn(PROTO_TEST, source), []);
    });
  }
}

const IMPURE = [
  "const a = Date.now();",
  "const a = new Date();",
  "const a = performance.now();",
  "const a = Math.random();",
  "const a = crypto.randomUUID();",
  "console.log(1);",
  "setTimeout(f, 1);",
  "setInterval(f, 1);",
  "const a = Deno.env;",
  "await fetch(a);",
];

judged("what proto may not do", PROTO_FILE, ["tunnel/pure-proto"], IMPURE);
judged("what others may do", HOST_FILE, [], IMPURE);
judged("a field named like what is refused", PROTO_FILE, [], [
  "const a = timers.setTimeout(f, 1);\nconst b = x.now();",
]);

const TABLE = "const T: Readonly<Record<string, F>> = { tcp, udp };\n";

judged("a table with a prototype", HOST_FILE, ["tunnel/own-keys"], [
  `${TABLE}const dial = T[protocol];`,
  `${TABLE}const dial = T[target.protocol]!;`,
  `${TABLE}T[name] = value;`,
  "const T = { tcp, udp };\nconst dial = T[protocol as keyof typeof T];",
  "const T: { [name: string]: F } = {};\nconst dial = T[protocol];",
  "function f(map: Partial<Record<string, F>>, key) { return map[key]; }",
  "const f = (map: Record<string, F>, key) => map[key];",
  "class C { #map: Record<string, F>; m(key) { return this.#map[key]; } }",
  "interface I { map: Record<string, F> }\nconst f = (i) => i.map[key];",
  // Another key was asked for.
  `${TABLE}const dial = Object.hasOwn(T, a) ? T[b] : undefined;`,
]);

judged("no table of texts", HOST_FILE, [], [
  `${TABLE}const dial = T["tcp"];`,
  `${TABLE}const dial = T.tcp;`,
  `${TABLE}const dial = Object.hasOwn(T, protocol) ? T[protocol] : no;`,
  `${TABLE}function f(k) { if (!Object.hasOwn(T, k)) return; return T[k]; }`,
  "const T: Record<string, F> = { __proto__: null, tcp };\nT[protocol];",
  "const T: Record<string, F> = Object.create(null);\nT[protocol];",
  // The compiler knows the keys.
  "const T: Record<Protocol, F> = { tcp, udp };\nT[protocol];",
  "const T: Record<number, F> = { 200: ok };\nT[status];",
  "const T: readonly F[] = [];\nT[index];",
  "const T = new Map<string, F>();\nT.get(protocol);",
]);

judged("a promise nobody handles", HOST_FILE, ["tunnel/no-void-promise"], [
  "async function f() {}\nvoid f();",
  "class C { async #m() {} n() { void this.#m(); } }",
  "class C { m(): Promise<void> { return p; } n() { void this.m(); } }",
  "const g = () => void later.then(run);",
  "const g = () => void this.later?.finally(run);",
]);

judged("no promise that nobody handles", HOST_FILE, [], [
  "const g = () => void map.delete(key);",
  "function f() {}\nvoid f();",
  'async function f() {}\nunawaited("task", f());',
]);
