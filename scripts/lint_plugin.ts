/**
 * The project's own lint rules, run by `deno lint`.
 *
 * - `tunnel/function-length`: a function fits on one screen.
 * - `tunnel/pure-proto`: `proto` is sans-IO; clock, timers, randomness and
 *   logging are handed in, or a test could not control them.
 * - `tunnel/no-void-promise`: what nobody waits for is reported when it fails.
 * - `tunnel/own-keys`: a text that a peer may choose finds nothing of
 *   `Object.prototype` in a table.
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

/** Types whose keys are any text: an object of such a type has a prototype. */
const OPEN_TABLE =
  /^(?:(?:Readonly|Partial|Required)<\s*)*(?:Record<\s*string\s*,|\{\s*(?:readonly\s+)?\[\s*\w+\s*:\s*string\s*\])/;

const ownKeys: Deno.lint.Rule = {
  create(context) {
    if (!ships(context.filename)) return {};
    const tables = new Set<string>();
    const bare = new Set<string>();
    const uses: Deno.lint.MemberExpression[] = [];
    const textOf = (node: Deno.lint.Node) =>
      context.sourceCode.text.slice(...node.range);
    const note = (key: Deno.lint.Node, type: Typed) => {
      const annotation = type.typeAnnotation;
      if (!annotation) return;
      const text = textOf(annotation).replace(/^\s*:\s*/, "");
      if (OPEN_TABLE.test(text)) tables.add(nameOf(key, textOf));
    };
    return {
      VariableDeclarator(node) {
        note(node.id, node.id as Typed);
        if (isBare(node.init, textOf)) bare.add(nameOf(node.id, textOf));
      },
      PropertyDefinition(node) {
        note(node.key, node as Typed);
        if (isBare(node.value, textOf)) bare.add(nameOf(node.key, textOf));
      },
      TSPropertySignature(node) {
        note(node.key, node as Typed);
      },
      [FUNCTIONS](node: Deno.lint.Node) {
        const { params } = node as Deno.lint.FunctionDeclaration;
        for (const param of params as readonly Deno.lint.Node[]) {
          note(param, param as Typed);
        }
      },
      MemberExpression(node) {
        if (node.computed && node.property.type !== "Literal") uses.push(node);
      },
      "Program:exit"() {
        for (const use of uses) {
          const name = nameOf(use.object, textOf);
          // A cast says that nobody knows whether the table has the key.
          const isCast = / as keyof /.test(textOf(use.property));
          if (!isCast && !tables.has(name) || bare.has(name)) continue;
          if (isGuarded(use, textOf)) continue;
          context.report({ node: use, message: OWN_KEYS });
        }
      },
    };
  },
};

const OWN_KEYS =
  "Table with a prototype, indexed by a text: `constructor` is " +
  "in it, too; make it a Map, ask Object.hasOwn first, or write __proto__: null";

/** What may have a type. */
interface Typed {
  readonly typeAnnotation?: Deno.lint.Node | undefined;
}

/** The last name of `a`, `a.b`, `this.#b`, `#b`, `a: Record<…>`, `a?`. */
function nameOf(
  node: Deno.lint.Node,
  textOf: (node: Deno.lint.Node) => string,
): string {
  if (node.type === "MemberExpression") return nameOf(node.property, textOf);
  if (node.type === "TSNonNullExpression" || node.type === "ChainExpression") {
    return nameOf(node.expression, textOf);
  }
  if (node.type === "Identifier") return node.name;
  if (node.type === "PrivateIdentifier") return `#${node.name}`;
  return textOf(node);
}

/** An object without a prototype. */
function isBare(
  node: Deno.lint.Node | null | undefined,
  textOf: (node: Deno.lint.Node) => string,
): boolean {
  if (!node) return false;
  return /^(?:\{\s*__proto__: null|Object\.create\(null\))/.test(textOf(node));
}

/** Whether the function has asked first whether the key is its own. */
function isGuarded(
  use: Deno.lint.MemberExpression,
  textOf: (node: Deno.lint.Node) => string,
): boolean {
  const asked = `Object.hasOwn(${textOf(use.object)}, ${textOf(use.property)})`;
  let node: Deno.lint.Node | undefined = use;
  while (node !== undefined && !IS_FUNCTION.test(node.type)) {
    node = (node as { parent?: Deno.lint.Node }).parent;
  }
  if (node === undefined) return false;
  const before = textOf(node).slice(0, use.range[0] - node.range[0]);
  return before.includes(asked);
}

const IS_FUNCTION = /^(?:FunctionDeclaration|FunctionExpression|Program)$/;

/**
 * A promise behind `void` has nobody who hears of its failure, and what it was
 * about stays half-done. What is asynchronous elsewhere cannot be seen here.
 */
const noVoidPromise: Deno.lint.Rule = {
  create(context) {
    if (!ships(context.filename)) return {};
    const textOf = (node: Deno.lint.Node) =>
      context.sourceCode.text.slice(...node.range);
    const promising = new Set<string>();
    const uses: Deno.lint.CallExpression[] = [];
    return {
      FunctionDeclaration(node) {
        if (node.async && node.id) promising.add(node.id.name);
      },
      MethodDefinition(node) {
        const { async, returnType } = node.value;
        const type = returnType ? textOf(returnType) : "";
        if (async || /^\s*:?\s*Promise</.test(type)) {
          promising.add(nameOf(node.key, textOf));
        }
      },
      UnaryExpression(node) {
        if (node.operator !== "void") return;
        if (node.argument.type === "CallExpression") uses.push(node.argument);
        if (node.argument.type === "ChainExpression") {
          const { expression } = node.argument;
          if (expression.type === "CallExpression") uses.push(expression);
        }
      },
      "Program:exit"() {
        for (const use of uses) {
          const name = nameOf(use.callee, textOf);
          if (!promising.has(name) && !/^(?:then|finally)$/.test(name)) {
            continue;
          }
          const message =
            "A promise that nobody waits for: what if it fails? " +
            "unawaited(where, promise, end) reports it and ends what it is about";
          context.report({ node: use, message });
        }
      },
    };
  },
};

function isProto(filename: string): boolean {
  return pathOf(filename).startsWith("proto/") && ships(filename);
}

/** Whether it is part of the program, or helps to make it. */
function ships(filename: string): boolean {
  const path = pathOf(filename);
  return !/^(?:tests|lab)\//.test(path) && !/_(?:test|bench)\.ts$/.test(path);
}

function pathOf(filename: string): string {
  const root = new URL("..", import.meta.url).pathname;
  return filename.startsWith(root) ? filename.slice(root.length) : filename;
}

const plugin: Deno.lint.Plugin = {
  name: "tunnel",
  rules: {
    "function-length": functionLength,
    "no-void-promise": noVoidPromise,
    "own-keys": ownKeys,
    "pure-proto": pureProto,
  },
};

export default plugin;
