import { assertEquals, assertThrows } from "@std/assert";
import { FileError } from "../../platform/files/file_error.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import type { RuleSet } from "../../policy/rule_set.ts";
import { AGENT_FLAGS } from "../agent/flags.ts";
import { RULE_FLAGS, rulesOf } from "../agent/flags.ts";
import { liveConfig } from "./effective_flags.ts";
import { readFlags } from "./read_flags.ts";
import { words } from "../../tests/support/program/command_line.ts";

/** An agent that was started with `content` in its file. */
function started(content: string, ...words: readonly string[]) {
  const file = { content };
  const sources = {
    argv: ["--config", "/etc/agent.yaml", ...words],
    environment: () => undefined,
    readFile: () => file.content,
  };
  const { values } = readFlags("agent", AGENT_FLAGS, sources);
  const log = Object.assign(new RecordedLog(), {
    level: values.v,
    flush: () => {},
  });
  const taken: (RuleSet | undefined)[] = [];
  const source = liveConfig({
    command: "agent",
    table: AGENT_FLAGS,
    sources,
    values,
    log,
    live: {
      flags: RULE_FLAGS,
      take: (values) => taken.push(rulesOf(values)),
    },
  })!;
  const reload = (content: string) => {
    file.content = content;
    return source.reload();
  };
  return { source, reload, log, taken };
}

Deno.test("the level of the log follows its file", () => {
  const { source, reload, log } = started("v: 2");
  assertEquals(source.files, ["/etc/agent.yaml"]);
  assertEquals(reload("v: 2 # a comment"), undefined);
  assertEquals(reload("v: 4"), "the level of the log is 4");
  assertEquals(log.level, 4);
  assertEquals(reload(""), "the level of the log is 2");
  assertEquals(log.level, 2);
});

Deno.test("a level on the command line stays what it is", () => {
  const { reload, log } = started("v: 2", "--v=6");
  assertEquals(reload("v: 4"), undefined);
  assertEquals(log.level, 6);
});

Deno.test("what cannot change while the program runs is named", () => {
  const { reload } = started("v: 2");
  assertEquals(
    reload("v: 4\nadmin-server-port: 9000\nlinks: 3"),
    "the level of the log is 4; taken over at the next start: " +
      "--links, --admin-server-port",
  );
  assertEquals(
    reload("v: 4\nlinks: 3"),
    "taken over at the next start: --links",
  );
  assertEquals(reload("v: 4"), "as it was at the start");
});

Deno.test("rules follow their file, and a wrong one keeps the old", () => {
  const { reload, taken } = started("deny: tcp:*:22");
  assertEquals(reload("deny: [tcp:*:22, tcp:*:23]"), "taken over: --deny");
  assertEquals(taken.length, 1);
  assertThrows(
    () => reload("deny: nonsense"),
    FileError,
    'the rule "nonsense", column 1',
  );
  assertEquals(reload(""), "taken over: --deny");
  assertEquals(taken.at(-1), undefined);
  assertEquals(taken.length, 2);
});

Deno.test("a file that is wrong changes nothing", () => {
  const { reload, log } = started("v: 2");
  for (const content of ["v: 99", "unknown: 1", "v: [", "- v"]) {
    assertThrows(() => reload(content), FileError, "/etc/agent.yaml");
  }
  assertEquals(log.level, 2);
  assertEquals(reload("v: 4"), "the level of the log is 4");
});

Deno.test("without a file there is nothing to follow", () => {
  const sources = words([]);
  const { values } = readFlags("agent", AGENT_FLAGS, sources);
  const log = Object.assign(new RecordedLog(), { level: 2, flush: () => {} });
  const options = {
    command: "agent",
    table: AGENT_FLAGS,
    sources,
    values,
    log,
  };
  assertEquals(liveConfig(options), undefined);
});
