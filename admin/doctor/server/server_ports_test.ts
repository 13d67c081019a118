import { assertEquals, assertMatch } from "@std/assert";
import { inMemoryFolder } from "../../../tests/support/memory/memory_folder.ts";
import { type Listen, lookAtPort } from "./server_ports.ts";

const SOCKET: Listen = {
  name: "frontend",
  flag: "--server-port",
  bindFlag: "--server-bind-address",
  hostname: "",
  port: 0,
};

Deno.test("a file in a socket's place is a fault only where the server does not remove it", () =>
  inMemoryFolder(async (folder) => {
    const path = `${folder}/front.sock`;
    await Deno.writeTextFile(path, "");
    const subject = { running: undefined, given: new Set<string>() };
    const kept = lookAtPort({ ...SOCKET, path }, subject);
    assertEquals(kept?.outcome, "failed");
    const listen = { ...SOCKET, path, removesFile: true };
    const removed = lookAtPort(listen, subject);
    assertEquals(removed?.outcome, "ok");
    assertMatch(JSON.stringify(removed), /which the server removes/);
  }));
