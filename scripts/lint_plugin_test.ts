import { assertEquals } from "@std/assert";
import plugin, { FUNCTION_LINES_MAX } from "./lint_plugin.ts";

const PROTO_FILE = new URL("../proto/frames/a.ts", import.meta.url).pathname;
const PROTO_TEST = PROTO_FILE.replace("a.ts", "a_test.ts");
const HOST_FILE = new URL("../host/a.ts", import.meta.url).pathname;

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
