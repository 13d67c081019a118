/**
 * Each code of the table is used somewhere, and each error that users may see
 * has one. That log lines have one is what the type of `Log` says, and that no
 * code is used which is not in the table what `Code` says.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { CODES } from "../proto/codes/codes.ts";
import { productSources } from "./project_files.ts";

/** Errors that are caught where better words are known, by name. */
const UNSEEN: ReadonlySet<string> = new Set([
  ...["AdminFailure", "AskError", "CallerLeft"],
  ...["ConnectionUnavailableError", "DerError", "GrpcError"],
  ...["HpackError", "LateError", "LayoutError"],
  ...["MalformedError", "MessageError", "NoAnswerYetError"],
  ...["PlanError", "QueueError", "RefusedResource"],
  ...["SavedFileError", "ServiceMessageError", "SslError"],
  ...["StreamEnd", "FlagValueError", "BenchError"],
]);

const FILES = await productSources();

Deno.test("each code of the table is used", () => {
  const used = new Set<string>();
  for (const [path, text] of FILES) {
    if (path.startsWith("proto/codes/")) continue;
    for (const [code] of text.matchAll(/\bTUN\d{3}\b/g)) used.add(code);
  }
  assertEquals(Object.keys(CODES).filter((code) => !used.has(code)), []);
});

Deno.test("each error that users may see has a code", () => {
  const without: string[] = [];
  for (const text of FILES.values()) {
    const classes = text.matchAll(
      /class (\w+) extends Error \{(.*?)\n\}|class (\w+) extends Error \{\}/gs,
    );
    for (const [, name, body = "", empty] of classes) {
      const isCoded = body.includes("tunnelCode");
      if (!isCoded && !UNSEEN.has((name ?? empty)!)) {
        without.push(name ?? empty!);
      }
    }
  }
  assertEquals(without, []);
});
