import { assertEquals } from "@std/assert";
import {
  AGENT_STATUS,
  NODE,
  NOW,
  SERVER_STATUS,
} from "../../tests/support/rigs/ask_answers.ts";
import { nodeSections } from "./nodes.ts";
import { nextCommand, shellWord } from "./cells.ts";
import { expiryCell, programState, statusSections } from "./status.ts";

const NOW_MS = Date.parse(NOW);
const headings = (sections: ReturnType<typeof statusSections>) =>
  sections.map(({ heading }) => heading);

Deno.test("a status has its sections in one order, and those that say something", () => {
  assertEquals(headings(statusSections(SERVER_STATUS, NOW_MS)), [
    "Servers",
    "Nodes",
    "Connections",
    "Discovery",
    "Expires",
  ]);
  assertEquals(headings(statusSections(AGENT_STATUS, NOW_MS)), [
    "Links",
    "Announces",
    "Connections",
  ]);
  assertEquals(headings(nodeSections(NODE, NOW_MS)), [
    "Links",
    "Connected",
    "Announces",
    "Events",
  ]);
});

Deno.test("what expires is the worse the sooner, and where it is not renewed", () => {
  const at = (days: number) =>
    new Date(NOW_MS + days * 86_400_000).toISOString();
  assertEquals(expiryCell(at(20), "by hand", NOW_MS), "20d");
  assertEquals(expiryCell(at(5), "by itself", NOW_MS), "5d");
  assertEquals(expiryCell(at(5), "by hand", NOW_MS), {
    text: "5d",
    tone: "warn",
  });
  assertEquals(expiryCell(at(-1), "by itself", NOW_MS), {
    text: "expired",
    tone: "bad",
  });
});

Deno.test("a program that drains says that before all else", () => {
  const { program } = SERVER_STATUS;
  assertEquals(programState(program), "ready");
  assertEquals(programState({ ...program, isReady: false }), "not ready");
  assertEquals(programState({ ...program, isDraining: true }), "draining");
});

Deno.test("the next command names a peer so that no shell obeys it", () => {
  const warning = { severity: "warning", message: "" } as const;
  assertEquals(nextCommand(warning), undefined);
  assertEquals(
    nextCommand({ ...warning, code: "TUN203" }),
    "tunnel explain TUN203",
  );
  assertEquals(
    nextCommand({ ...warning, code: "TUN402", node: "a; rm 'b'" }),
    `tunnel doctor node 'a; rm '\\''b'\\'''`,
  );
  assertEquals(shellWord("edge-7.example"), "edge-7.example");
});
