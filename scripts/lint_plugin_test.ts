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

const IMPURE: readonly string[] = [
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

for (const source of IMPURE) {
  Deno.test(`proto refuses \`${source}\`, its tests and host do not`, () => {
    assertEquals(problemsIn(PROTO_FILE, source), ["tunnel/pure-proto"]);
    assertEquals(problemsIn(PROTO_TEST, source), []);
    assertEquals(problemsIn(HOST_FILE, source), []);
  });
}

Deno.test("proto may have a field named like what is refused", () => {
  const source = "const a = timers.setTimeout(f, 1);\nconst b = x.now();\n";
  assertEquals(problemsIn(PROTO_FILE, source), []);
});

const TABLE = "const T: Readonly<Record<string, F>> = { tcp, udp };\n";

const OPEN: readonly string[] = [
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
];

for (const source of OPEN) {
  Deno.test(`a table with a prototype: ${source.split("\n").at(-1)}`, () => {
    assertEquals(problemsIn(HOST_FILE, source), ["tunnel/own-keys"]);
    assertEquals(problemsIn(PROTO_TEST, source), []);
  });
}

const CLOSED: readonly string[] = [
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
];

for (const source of CLOSED) {
  Deno.test(`no table of texts: ${source.split("\n").at(-1)}`, () => {
    assertEquals(problemsIn(HOST_FILE, source), []);
  });
}

const UNHEARD: readonly string[] = [
  "async function f() {}\nvoid f();",
  "class C { async #m() {} n() { void this.#m(); } }",
  "class C { m(): Promise<void> { return p; } n() { void this.m(); } }",
  "const g = () => void later.then(run);",
  "const g = () => void this.later?.finally(run);",
];

for (const source of UNHEARD) {
  Deno.test(`a promise that nobody handles: ${source}`, () => {
    assertEquals(problemsIn(HOST_FILE, source), ["tunnel/no-void-promise"]);
    assertEquals(problemsIn(PROTO_TEST, source), []);
  });
}

const HEARD: readonly string[] = [
  "const g = () => void map.delete(key);",
  "function f() {}\nvoid f();",
  'async function f() {}\nunawaited("task", f());',
];

for (const source of HEARD) {
  Deno.test(`no promise that nobody handles: ${source}`, () => {
    assertEquals(problemsIn(HOST_FILE, source), []);
  });
}
