/**
 * The command lines of the documents: those of code blocks that begin with
 * `tunnel `, alone or behind a prompt (`$ `, `server$ `), and those that a table
 * says one is to type.
 *
 * @module
 */

const ROOT = new URL("../../", import.meta.url);

/** A command line, with what continues it. */
export interface CommandLine {
  /** Such as `docs/policy.md`. */
  readonly page: string;
  /** Of the page, from 1. */
  readonly number: number;
  /** As the page has it, without the prompt; lines of `\` and newline. */
  readonly text: string;
  /** What the page shows below it, until the next prompt or the block's end. */
  readonly answer: string;
}

/** README and all of docs/, in this order. */
export function pages(): readonly string[] {
  const docs = [...Deno.readDirSync(new URL("docs/", ROOT))]
    .filter(({ name }) => name.endsWith(".md"))
    .map(({ name }) => `docs/${name}`);
  return ["README.md", ...docs.sort()];
}

/** All of them, in the order of the pages. */
export function commandLines(): readonly CommandLine[] {
  return pages().flatMap((page) =>
    linesOf(page, Deno.readTextFileSync(new URL(page, ROOT)))
  );
}

const PROMPT = /^(?:[\w-]+)?\$ +/;

/** Pages whose tables have commands in one column: "what to type". */
const TYPED = ["docs/troubleshooting.md"];

/** Those of one page. */
export function linesOf(page: string, text: string): readonly CommandLine[] {
  const typed = TYPED.includes(page) ? typedIn(text) : [];
  return [...typed.map((line) => ({ page, ...line })), ...inBlocks(page, text)];
}

/** Commands in rows of tables. */
function typedIn(text: string): readonly Omit<CommandLine, "page">[] {
  return text.split("\n").flatMap((row, index) =>
    row.startsWith("|")
      ? [...row.matchAll(/`(tunnel [^`]+)`/g)].map(([, command]) => ({
        number: index + 1,
        text: command!,
        answer: "",
      }))
      : []
  );
}

function inBlocks(page: string, text: string): readonly CommandLine[] {
  return blocksOf(text).flatMap(({ first, lines }) => {
    const hasPrompts = lines.some((line) => PROMPT.test(line));
    const found: { number: number; text: string; answer: string }[] = [];
    let isContinued = false;
    let isOurs = false;
    for (const [index, line] of lines.entries()) {
      if (isContinued && isOurs) {
        found.at(-1)!.text += `\n${line}`;
      } else if (!isContinued) {
        const isPrompt = PROMPT.test(line);
        const words = line.replace(PROMPT, "");
        const isCommand = isPrompt || !hasPrompts;
        if (isCommand && words.startsWith("tunnel ")) {
          found.push({ number: first + index, text: words, answer: "" });
        } else if (!isCommand && isOurs) {
          found.at(-1)!.answer += `${line}\n`;
          continue;
        }
        isOurs = isCommand && words.startsWith("tunnel ");
      }
      isContinued = line.endsWith("\\");
    }
    return found.map((line) => ({ page, ...line }));
  });
}

interface Block {
  /** Number of its first line. */
  readonly first: number;
  readonly lines: readonly string[];
}

/** Fenced ones, and those that four spaces make. */
function blocksOf(text: string): readonly Block[] {
  const blocks: { first: number; lines: string[] }[] = [];
  let isFenced = false;
  let wasIndented = false;
  for (const [index, line] of text.split("\n").entries()) {
    const isFence = line.startsWith("```");
    const isIndented = !isFenced && /^ {4}\S/.test(line);
    if (isFence) isFenced = !isFenced;
    if (isFence ? isFenced : isIndented && !wasIndented) {
      blocks.push({ first: index + (isFence ? 2 : 1), lines: [] });
    }
    if (isFenced && !isFence) blocks.at(-1)!.lines.push(line);
    if (isIndented) blocks.at(-1)!.lines.push(line.slice(4));
    wasIndented = isIndented;
  }
  return blocks;
}
