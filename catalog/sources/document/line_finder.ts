/**
 * The line of a YAML or JSON text on which a place of the document stands.
 *
 * For messages only: reading a text with the position of everything in it takes
 * ten times as long as reading it, so that is done when something is wrong.
 *
 * @module
 */

import type { Node, Pair } from "yaml";
import type { Place } from "./document_fields.ts";

/** Lines of places, counted from 1; of what is missing, that of what it is in. */
export async function findLines(
  text: string,
  places: readonly Place[],
): Promise<readonly number[]> {
  // Loading it takes 40 ms, which most starts need not wait for.
  const { isMap, isSeq, LineCounter, parseDocument } = await import("yaml");
  const lineCounter = new LineCounter();
  const { contents } = parseDocument(text, {
    lineCounter,
    prettyErrors: false,
    logLevel: "silent",
  });
  return places.map((place) => {
    let node: Node | null = contents;
    let offset = node?.range?.[0] ?? 0;
    for (const part of place) {
      if (isSeq(node) && typeof part === "number") {
        node = (node.items[part] ?? null) as Node | null;
        offset = node?.range?.[0] ?? offset;
      } else if (isMap(node)) {
        const pair: Pair<Node, Node | null> | undefined =
          (node.items as Pair<Node, Node | null>[])
            .find(({ key }) => String(key) === part);
        offset = pair?.key.range?.[0] ?? offset;
        node = pair?.value ?? null;
      } else break;
      if (node === null) break;
    }
    return lineCounter.linePos(offset).line;
  });
}
