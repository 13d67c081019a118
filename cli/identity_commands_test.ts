import {
  assert,
  assertEquals,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { ExitCode } from "./program/exit_codes.ts";
import { parseJoinToken } from "../proto/identity/join_token.ts";
import {
  createAuthorities,
  loadAuthorities,
  pinOfCurrent,
} from "../server/identity/authorities.ts";
import { NodeStore } from "../server/identity/node_store.ts";
import { DirectoryStore } from "../neighbours/store/directory_store.ts";
import { inMemoryFolder } from "../tests/support/memory/memory_folder.ts";
import { noteTrust } from "../server/identity/authority_step.ts";
import { CA_COMMAND } from "./ca.ts";
import type { Command } from "./program/command.ts";
import { defaultStateDirectory } from "./flags/state_directory.ts";
import { NODE_COMMAND } from "./node.ts";
import { TOKEN_COMMAND } from "./token.ts";
import { authorityIdOf } from "../proto/identity/enrolment.ts";
import { nextTurn } from "../tests/support/watch/event_loop.ts";
import { type Ran, ran } from "../tests/support/program/command_line.ts";

/** Runs `tunnel …` over a new state directory. */
function inState(
  test: (
    run: (command: Command, ...argv: string[]) => Promise<Ran>,
    state: DirectoryStore,
  ) => Promise<void>,
) {
  return inMemoryFolder(async (folder) => {
    const { state } = await DirectoryStore.openOrCreate(
      folder,
      createAuthorities,
    );
    await test(
      (command, ...argv) =>
        ran(command.run, [...argv, `--state-dir=${folder}`]),
      state,
    );
  });
}

/** Of every node here. */
const KEY = "ab".repeat(32);

async function addNode(state: DirectoryStore, name: string) {
  const { current } = await loadAuthorities(state);
  const joinedAt = "2030-01-01T00:00:00.000Z";
  const record = {
    state: "approved",
    ...{ name, publicKeySha256: KEY, identifiers: "" },
    ...{ joinedAt, tokenId: "aaaaaaaaaa", joinedFrom: "10.0.0.1:1" },
    certificate: {
      ...{ serialNumber: "01", authority: authorityIdOf(current.facts) },
      ...{ issuedAt: joinedAt, expiresAt: "2030-01-08T00:00:00.000Z" },
    },
  } as const;
  await state.transact((change) => new NodeStore(state).write(record, change));
}

/** The node says which authorities it knows. */
async function knows(
  state: DirectoryStore,
  name: string,
  ids: readonly string[],
) {
  const authorities = await loadAuthorities(state);
  const notes = { nodes: new NodeStore(state), authorities: () => authorities };
  await noteTrust(notes, name, KEY, ids);
}

/** What issues now, and what will. */
async function bothIds(state: DirectoryStore) {
  const { current, next } = await loadAuthorities(state);
  return [current, next!].map(({ facts }) => authorityIdOf(facts));
}

Deno.test("tunnel token create prints the line to run on the node", () =>
  inState(async (run, state) => {
    const words = ["--node=edge-*", "--server=tunnel.example:8091"];
    const { output, errors } = await run(TOKEN_COMMAND, "create", ...words);
    assertEquals(errors, "", "no warning: it is for some names alone");
    const [, server, token] = /^tunnel agent --server (\S+) --join (\S+)$/m
      .exec(output)!;
    assertEquals(server, "tunnel.example:8091");
    const { authorityPin, id, secret } = parseJoinToken(token!);
    assertEquals(authorityPin, pinOfCurrent(await loadAuthorities(state)));
    const list = await run(TOKEN_COMMAND, "list", "--json");
    assertEquals(list.output.includes(secret), false);
    assertEquals(list.output.includes("secretHash"), false);
    const [listed] = JSON.parse(list.output);
    const { state: its, nodePattern } = listed;
    assertEquals([listed.id, its, nodePattern], [id, "usable", "edge-*"]);
    const table = await run(TOKEN_COMMAND, "list");
    assertMatch(table.output, /^ID {10}STATE {3}USED {2}NODES {3}EXPIRES/);
    assertEquals((await run(TOKEN_COMMAND, "revoke", id)).code, 0);
    const again = await run(TOKEN_COMMAND, "revoke", id);
    assertEquals(again.code, 1);
    assertMatch(again.errors, /^tunnel token: Cannot revoke/);
  }));

Deno.test("a token may be good for years, and not for longer than the authority", () =>
  inState(async (run) => {
    assertEquals((await run(TOKEN_COMMAND, "create", "--ttl=9000h")).code, 0);
    const { output } = await run(TOKEN_COMMAND, "list", "--json");
    const [{ createdAt, expiresAt }] = JSON.parse(output);
    const lifeMs = Date.parse(expiresAt) - Date.parse(createdAt);
    assertEquals(lifeMs, 9_000 * 3600_000);
    const late = await run(TOKEN_COMMAND, "create", "--ttl=87601h");
    assertEquals(late.code, 2);
    assertMatch(late.errors, /a duration such as 24h.* from 1ms to 87600h0m0s/);
  }));

Deno.test("a token's line makes the node ask for the one name that it may have", () =>
  inState(async (run) => {
    const lines = async (...flags: string[]) => {
      const { output } = await run(TOKEN_COMMAND, "create", ...flags);
      const [comment, command] = output.split("\n");
      return [
        /^# On (.+), before/.exec(comment!)?.[1],
        / --node .*/.exec(command!)?.[0],
      ];
    };
    assertEquals(await lines("--node=edge-7"), [
      "one node named edge-7",
      " --node edge-7",
    ]);
    assertEquals(await lines("--node=shop-*", "--uses=50"), [
      "up to 50 nodes named shop-*",
      undefined,
    ]);
    assertEquals(await lines(), ["one node of any name", undefined]);
  }));

Deno.test("a token for any name says so, and one for an address is none", () =>
  inState(async (run) => {
    const any = await run(TOKEN_COMMAND, "create", "--json");
    assertMatch(any.errors, /may take any name .* --node NAME or --node 'shop/);
    JSON.parse(any.output);
    for (const address of ["10.9.0.2", "127.1", "0x7f.1", "7", "1.2.3."]) {
      const words = ["create", `--node=${address}`];
      const { code, errors } = await run(TOKEN_COMMAND, ...words);
      assertEquals(code, 2);
      assertMatch(errors, /nothing that reads as an IP address/);
    }
  }));

Deno.test("a token's line is one that an agent takes, or there is no token", () =>
  inState(async (run) => {
    const create = (server: string) =>
      run(TOKEN_COMMAND, "create", "--node=n1", `--server=${server}`);
    for (
      const [given, printed] of [
        ["[::1]", "[::1]:8091"],
        ["tunnel.example", "tunnel.example:8091"],
        ["a:1,[fd00::7]:2", "a:1,[fd00::7]:2"],
      ] as const
    ) {
      const { output } = await create(given);
      assertStringIncludes(output, `--server ${printed} --join`);
    }
    const { code, errors } = await create("::1");
    assertEquals(code, ExitCode.USAGE);
    assertStringIncludes(errors, "stands in brackets, and a port");
    const { output } = await run(TOKEN_COMMAND, "list", "--json");
    assertEquals(JSON.parse(output).length, 3);
  }));

Deno.test("a token's line names the server as it was started", () =>
  inState(async (run, state) => {
    const serving = (agents: string, names: string[] = []) =>
      Deno.writeTextFile(
        state.path("serving.json"),
        JSON.stringify({ agents, names }),
      );
    const server = async () =>
      JSON.parse((await run(TOKEN_COMMAND, "create", "--json")).output).server;
    await serving("10.0.0.1:9091");
    assertEquals(await server(), "10.0.0.1:9091");
    await serving("[::]:9091", ["tunnel.example"]);
    assertEquals(await server(), "tunnel.example:9091");
    await serving("0.0.0.0:9091");
    const { output, errors } = await run(TOKEN_COMMAND, "create", "--json");
    assertEquals(JSON.parse(output).server, `${Deno.hostname()}:9091`);
    assertMatch(errors, /name of this machine.* --server HOST:9091/);
  }));

Deno.test("a state is listed only where no server runs, and only if it can answer", () =>
  inState(async (run, state) => {
    await addNode(state, "edge-7");
    const path = `${state.root}/admin.sock`;
    // What is left of a server that was killed: closing removes only its name.
    const killed = Deno.listen({ transport: "unix", path: `${path}.new` });
    await Deno.rename(`${path}.new`, path);
    killed.close();
    const away = await run(NODE_COMMAND, "list");
    assertEquals(away.code, 0);
    assertMatch(away.errors, /No server answers, so this is what its state/);
    for (const question of [["--only=offline"], ["-o", "json"], ["--watch"]]) {
      const lone = await run(NODE_COMMAND, "list", ...question);
      assertEquals([lone.code, lone.output], [1, ""]);
      assertMatch(lone.errors, /no program answers there; is it running\?/);
    }
    await Deno.remove(path);
    // One runs, and refuses.
    await using _server = Deno.serve(
      { path, onListen: () => {} },
      () => Response.json({ message: "it is busy" }, { status: 503 }),
    );
    const refused = await run(NODE_COMMAND, "list");
    assertEquals([refused.code, refused.output], [1, ""]);
    assertMatch(refused.errors, /it is busy/);
  }));

Deno.test("tunnel node approves, revokes and forgets", () =>
  inState(async (run, state) => {
    await addNode(state, "edge-7");
    const kept = () => {
      const { state: its, ...node } = new NodeStore(state).read("edge-7")!;
      return [its, node.reason, node.identifiers];
    };
    const address = "ipv4=10.0.0.7";
    for (
      const [argv, ...wanted] of [
        [["revoke", "--reason=stolen"], "revoked", "stolen", ""],
        [
          ["approve", `--identifiers=${address}`],
          "approved",
          undefined,
          address,
        ],
        [["approve"], "approved", undefined, address],
        [["approve", "--identifiers=-"], "approved", undefined, ""],
      ] as const
    ) {
      await run(NODE_COMMAND, ...argv, "edge-7");
      assertEquals(kept(), wanted);
      if (argv[0] === "approve") continue;
      const { output } = await run(NODE_COMMAND, "list");
      assertMatch(output, /^edge-7 +revoked \(stolen\)/m);
    }
    const wrong = ["approve", "edge-7", "--identifiers=x=1"];
    assertEquals((await run(NODE_COMMAND, ...wrong)).code, 2);
    assertEquals((await run(NODE_COMMAND, "forget", "edge-7")).code, 0);
    for (const verb of ["approve", "revoke", "forget"]) {
      const { errors } = await run(NODE_COMMAND, verb, "edge-7");
      assertStringIncludes(errors, 'Cannot find node "edge-7"');
    }
  }));

Deno.test("tunnel ca does not retire what a node still needs", () =>
  inState(async (run, state) => {
    await addNode(state, "edge-7");
    assertEquals((await run(CA_COMMAND, "rotate")).code, 0);
    assertMatch((await run(CA_COMMAND, "activate")).output, / previous +1 /);
    const { code, errors } = await run(CA_COMMAND, "retire");
    assertEquals(code, 1);
    assertMatch(errors, /are still held by edge-7, who have not yet said/);
    assertEquals((await run(CA_COMMAND, "retire", "--force")).code, 0);
    const shown = JSON.parse((await run(CA_COMMAND, "show", "--json")).output);
    assertEquals(shown.map(({ role }: { role: string }) => role), ["issues"]);
    const pem = await run(CA_COMMAND, "show", "--pem");
    assertEquals(pem.output, (await loadAuthorities(state)).bundle);
  }));

Deno.test("tunnel ca show says who knows an authority and who holds which, in full as JSON", () =>
  inState(async (run, state) => {
    const names = Array.from({ length: 9 }, (_, index) => `edge-${index}`);
    for (const name of names) await addNode(state, name);
    await run(CA_COMMAND, "rotate");
    const both = await bothIds(state);
    await knows(state, "edge-3", both);
    await knows(state, "edge-4", ["no id", ...both]);
    const { output } = await run(CA_COMMAND, "show");
    assertMatch(output, / next +0 +1 of 9 /);
    assertMatch(
      output,
      /Not yet known .*: edge-0, edge-1, edge-2, edge-4, edge-5, 3 more/,
    );
    await run(CA_COMMAND, "activate");
    const shown = JSON.parse((await run(CA_COMMAND, "show", "--json")).output);
    assertEquals(shown[0].knownTo, ["edge-3"]);
    assertEquals(shown[1].heldBy, names);
    const { errors } = await run(CA_COMMAND, "retire");
    for (const name of names) assertStringIncludes(errors, name);
    await run(CA_COMMAND, "retire", "--force");
    const before = new NodeStore(state).read("edge-5");
    await knows(state, "edge-5", both);
    const after = new NodeStore(state).read("edge-5");
    assertEquals(after, before, "nothing changes");
  }));

Deno.test("tunnel ca rotate --wait goes on until each node knows the next authority", () =>
  inState(async (run, state) => {
    await addNode(state, "edge-7");
    await addNode(state, "edge-8");
    let ended = false;
    const waiting = run(CA_COMMAND, "rotate", "--wait")
      .finally(() => ended = true);
    while ((await loadAuthorities(state)).next === undefined) await nextTurn();
    const both = await bothIds(state);
    await knows(state, "edge-7", both);
    assert(!ended);
    await knows(state, "edge-8", both);
    const { code, output } = await waiting;
    assertEquals(code, 0);
    assertStringIncludes(output, "2 of 2 nodes know the new authority.\n");
  }));

Deno.test("words that do not fit the verb are refused", () =>
  inState(async (run) => {
    for (
      const [command, argv, words] of [
        [TOKEN_COMMAND, [], "wants create, list, revoke"],
        [TOKEN_COMMAND, ["make"], 'Cannot do "make"'],
        [TOKEN_COMMAND, ["revoke"], "wanted tunnel token revoke ID"],
        [TOKEN_COMMAND, ["list", "x"], 'Unexpected word "x"'],
        [TOKEN_COMMAND, ["list", "--ttl=1h"], "it belongs to create"],
        [TOKEN_COMMAND, ["create", "--node=A?"], "wanted lower-case letters"],
        [TOKEN_COMMAND, ["create", "--identifiers=ipv4=x"], "no such address"],
        [TOKEN_COMMAND, ["create", "--identifiers=-"], "wanted key=value"],
        [NODE_COMMAND, ["revoke", "a", "b"], 'Unexpected word "b"'],
        [CA_COMMAND, ["rotate", "--force"], "it belongs to retire"],
      ] as const
    ) {
      const { code, errors } = await run(command, ...argv);
      assertEquals([code, errors.includes(words)], [2, true], errors);
    }
  }));

Deno.test("root keeps its state in /var/lib, everybody else at home", () => {
  const environment = (set: Record<string, string>) => (name: string) =>
    set[name];
  const at = (set: Record<string, string>, isRoot = false) =>
    defaultStateDirectory("server", environment(set), isRoot);
  assertEquals(at({}, true), "/var/lib/tunnel/server");
  assertEquals(at({}), "/var/lib/tunnel/server");
  assertEquals(at({ HOME: "/h" }), "/h/.local/state/tunnel/server");
  assertEquals(at({ HOME: "/h", XDG_STATE_HOME: "/x" }), "/x/tunnel/server");
});
