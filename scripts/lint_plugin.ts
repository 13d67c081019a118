/**
 * The project's own lint rules, run by `deno lint`.
 *
 * - `tunnel/function-length`: a function fits on one screen.
 * - `tunnel/pure-proto`: `proto` is sans-IO; clock, timers, randomness and
 *   logging are handed in, or a test could not control them.
 *
 * An exemption stands at the place it exempts, with its reason:
 * `// deno-lint-ignore tunnel/function-length -- the columns are a table`.
 *
 * @module
 */

/** One screen. */
export const FUNCTION_LINES_MAX = 70;

const BANNED_CALLS: ReadonlySet<string> = new Set([
  "Date.now",
  "performance.now",
  "Math.random",
  "crypto.getRandomValues",
  "crypto.randomUUID",
]);

const BANNED_OBJECTS: ReadonlySet<string> = new Set(["console", "Deno"]);

const BANNED_FUNCTIONS: ReadonlySet<string> = new Set([
  "setTimeout",
  "setInterval",
  "setImmediate",
  "fetch",
]);

const FUNCTIONS = "FunctionDeclaration, FunctionExpression, " +
  "ArrowFunctionExpression";

const functionLength: Deno.lint.Rule = {
  create(context) {
    return {
      [FUNCTIONS](node: Deno.lint.Node) {
        const text = context.sourceCode.text.slice(...node.range);
        const lines = text.split("\n").length;
        if (lines <= FUNCTION_LINES_MAX) return;
        const message = `Function of ${lines} lines: ` +
          `${FUNCTION_LINES_MAX} fit on one screen`;
        context.report({ node, message });
      },
    };
  },
};

const pureProto: Deno.lint.Rule = {
  create(context) {
    if (!isProto(context.filename)) return {};
    const refuse = (node: Deno.lint.Node, name: string) =>
      context.report({
        node,
        message: `${name} in proto: it is sans-IO, have it handed in`,
      });
    return {
      MemberExpression(node) {
        if (node.object.type !== "Identifier") return;
        const object = node.object.name;
        if (BANNED_OBJECTS.has(object)) return refuse(node, object);
        if (node.property.type !== "Identifier") return;
        const name = `${object}.${node.property.name}`;
        if (BANNED_CALLS.has(name)) refuse(node, name);
      },
      CallExpression(node) {
        if (node.callee.type !== "Identifier") return;
        if (BANNED_FUNCTIONS.has(node.callee.name)) {
          refuse(node, node.callee.name);
        }
      },
      NewExpression(node) {
        if (node.callee.type !== "Identifier") return;
        if (node.callee.name === "Date") refuse(node, "Date");
      },
    };
  },
};

function isProto(filename: string): boolean {
  const root = new URL("..", import.meta.url).pathname;
  const path = filename.startsWith(root)
    ? filename.slice(root.length)
    : filename;
  return path.startsWith("proto/") && !/_(?:test|bench)\.ts$/.test(path);
}

const plugin: Deno.lint.Plugin = {
  name: "tunnel",
  rules: { "function-length": functionLength, "pure-proto": pureProto },
};

export default plugin;
