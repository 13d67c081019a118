import { assert, assertEquals } from "@std/assert";
import {
  Engine,
  engineAndPeer,
  enginePair,
  openLogged,
} from "../../tests/support/memory/engine_pair.ts";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { ScriptedHttp2Peer } from "../../tests/support/peers/scripted_http2_peer.ts";
import {
  requestFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { ReceiveWindow, WINDOW_BYTES_DEFAULT } from "./flow_window.ts";
import {
  SETTINGS_CHANGE_ACK_TIMEOUT_MS,
  START_WINDOW_RISE_PAUSE_MS,
  START_WINDOW_STEPS,
  StartWindow,
} from "./settings_exchange.ts";

const KIB = 1024;
const START = 64 * KIB;

/** A window whose first announcement is acknowledged. */
function settled(configured = START): StartWindow {
  const window = new StartWindow(configured);
  window.acknowledge([], () => false);
  return window;
}

Deno.test("windows start smaller the more streams there are", () => {
  const due = [1, 256, 257, 2048, 2049, 65_536].map((streams) =>
    settled().due(streams, 0)
  );
  const [half, quarter] = [32 * KIB, 16 * KIB];
  assertEquals(due, [undefined, undefined, half, half, quarter, quarter]);
  assertEquals(START_WINDOW_STEPS.map(({ bytesMax }) => bytesMax), [
    half,
    quarter,
  ]);
});

Deno.test("who wants less from the start gets no more", () => {
  assertEquals(settled(10_000).due(100_000, 0), undefined);
  assertEquals(settled(20_000).due(2000, 0), undefined);
});

Deno.test("one change at a time, and none while it is not acknowledged", () => {
  const window = settled();
  window.announce(32 * KIB, [], 1, 0);
  assertEquals(window.due(10_000, 0), undefined);
  assert(window.suits(10_000));
  assert(window.acknowledge([], () => false));
  assertEquals(window.due(10_000, 0), 16 * KIB);
  assert(!window.acknowledge([], () => false));
});

Deno.test("it rises again at half of a step, and not at once", () => {
  const window = settled();
  window.announce(16 * KIB, [], 1, 1000);
  window.acknowledge([], () => false);
  const later = 1000 + START_WINDOW_RISE_PAUSE_MS;
  assertEquals(window.due(100, later - 1), undefined);
  assertEquals(window.due(2048, later), undefined);
  assertEquals(window.due(1025, later), undefined);
  assertEquals(window.due(1024, later), 32 * KIB);
  assertEquals(window.due(128, later), START);
});

/** The peer's end of one stream, as §6.9.2 reckons. */
interface Modelled {
  readonly id: number;
  readonly receiveWindow: ReceiveWindow;
  sendWindow: number;
}

/**
 * The law: whatever is under way, our window of a stream equals what the peer
 * may send plus what it has sent and what we have granted that has not arrived.
 */
Deno.test("accounts stay exact through any change, on streams of both sides", async () => {
  let changes = 0;
  await forAll(200, (prng) => {
    const model = new Model(prng);
    for (let step = 0; step < 300; step++) model.step();
    model.settle();
    for (const { id, receiveWindow, sendWindow } of model.streams) {
      assertEquals(receiveWindow.available, sendWindow, `stream ${id}`);
    }
    changes += model.changes;
  });
  assert(changes > 1000, `${changes} changes are no test`);
});

type ToPeer = { settings: number } | { update: number; id: number } | {
  open: number;
};
type ToUs = "ack" | { data: number; id: number } | { open: number };

class Model {
  readonly streams: Modelled[] = [];
  changes = 0;
  readonly #start = new StartWindow(START);
  readonly #toPeer: ToPeer[] = [{ settings: START }];
  readonly #toUs: ToUs[] = [];
  /** What the peer knows: its start window, and its streams. */
  #peerStart = WINDOW_BYTES_DEFAULT;
  readonly #peerWindows = new Map<number, number>();
  #nextOwn = 1;
  #nextPeer = 2;
  #isUnderWay = true;

  constructor(private readonly prng: Prng) {}

  step(): void {
    switch (this.prng.below(7)) {
      case 0:
        return this.#change();
      case 1:
        return this.#openOwn();
      case 2:
        return this.#openPeer();
      case 3:
        return this.#sendData();
      case 4:
        return this.#consume();
      case 5:
        for (let count = this.prng.below(9); count > 0; count--) {
          this.#peerReceives();
        }
        return;
      default:
        for (let count = this.prng.below(9); count > 0; count--) {
          this.#weHear();
        }
    }
  }

  /** Delivers everything, and writes down what the peer may send. */
  settle(): void {
    while (this.#toPeer.length > 0 || this.#toUs.length > 0) {
      this.#peerReceives();
      this.#weHear();
    }
    for (const stream of this.streams) {
      stream.sendWindow = this.#peerWindows.get(stream.id)!;
    }
  }

  #change(): void {
    const bytes = 1000 + this.prng.below(START);
    if (this.#isUnderWay) return; // As `due` would say.
    this.#start.announce(bytes, this.streams, this.#nextOwn, 0);
    this.#isUnderWay = true;
    this.#toPeer.push({ settings: bytes });
    this.changes++;
  }

  #openOwn(): void {
    const id = this.#nextOwn;
    this.#nextOwn += 2;
    this.#add(id, this.#start.ofOwnStream);
    this.#toPeer.push({ open: id });
  }

  #openPeer(): void {
    const id = this.#nextPeer;
    this.#nextPeer += 2;
    this.#peerWindows.set(id, this.#peerStart);
    this.#toUs.push({ open: id });
  }

  #add(id: number, bytes: number): void {
    const receiveWindow = new ReceiveWindow(0);
    receiveWindow.shift(bytes);
    this.streams.push({ id, receiveWindow, sendWindow: 0 });
  }

  #sendData(): void {
    const ids = [...this.#peerWindows.keys()];
    if (ids.length === 0) return;
    const id = this.prng.pick(ids);
    const may = this.#peerWindows.get(id)!;
    if (may <= 0) return;
    const data = this.prng.below(3) === 0 ? may : 1 + this.prng.below(may);
    this.#peerWindows.set(id, may - data);
    this.#toUs.push({ data, id });
  }

  #consume(): void {
    if (this.streams.length === 0) return;
    const { id, receiveWindow } = this.prng.pick(this.streams);
    const { outstanding } = receiveWindow;
    receiveWindow.release(this.prng.below(outstanding + 1));
    const update = receiveWindow.takeUpdate();
    if (update > 0) this.#toPeer.push({ update, id });
  }

  #peerReceives(): void {
    const said = this.#toPeer.shift();
    if (said === undefined) return;
    if ("open" in said) this.#peerWindows.set(said.open, this.#peerStart);
    else if ("update" in said) {
      const may = this.#peerWindows.get(said.id)!;
      this.#peerWindows.set(said.id, may + said.update);
    } else {
      const growth = said.settings - this.#peerStart;
      this.#peerStart = said.settings;
      for (const [id, may] of this.#peerWindows) {
        this.#peerWindows.set(id, may + growth);
      }
      this.#toUs.push("ack");
    }
  }

  #weHear(): void {
    const said = this.#toUs.shift();
    if (said === undefined) return;
    if (said === "ack") {
      this.#isUnderWay = false;
      assert(this.#start.acknowledge(this.streams, (id) => id % 2 === 1));
    } else if ("open" in said) this.#add(said.open, this.#start.ofPeerStream);
    else {
      const stream = this.streams.find(({ id }) => id === said.id)!;
      assert(
        stream.receiveWindow.receive(said.data),
        `${said.data} bytes on stream ${said.id} were honest`,
      );
    }
  }
}

Deno.test("the 257th stream makes a server announce less, and shrink with the ACK", () => {
  const { engine, peer } = engineAndPeer("server");
  for (let id = 1; id <= 513; id += 2) peer.headers(id, requestFields());
  peer.wants("SETTINGS");
  const [first] = engine.accepted;
  first!.onPiece = () => {};
  for (let frame = 0; frame < 4; frame++) peer.data(1, 16_384);
  assertEquals(first!.events.at(-1), "data 16384"); // It may not know yet.
  peer.acknowledge();
  first!.stream!.consumed(32_768);
  // 64 KiB sent of a window of 32 KiB: half of it must be made up for first.
  peer.wants("WINDOW_UPDATE 1 32768", "PING");
  peer.data(1, 1);
  peer.wants(`RST_STREAM 1 ${ErrorCode.FLOW_CONTROL_ERROR}`);
});

Deno.test("a stream that is opened before the ACK has the old window until then", () => {
  const { engine, peer } = engineAndPeer("server");
  for (let id = 1; id <= 515; id += 2) peer.headers(id, requestFields());
  const last = engine.accepted.at(-1)!;
  last.onPiece = () => {};
  for (let frame = 0; frame < 4; frame++) peer.data(515, 16_384);
  assertEquals(last.bodyBytes, 65_536);
  peer.acknowledge();
  peer.headers(517, requestFields());
  engine.accepted.at(-1)!.onPiece = () => {};
  peer.data(517, 16_384);
  peer.data(517, 16_384);
  peer.forget();
  peer.data(517, 1);
  peer.wants(`RST_STREAM 517 ${ErrorCode.FLOW_CONTROL_ERROR}`);
});

Deno.test("a window below the default binds from the ACK, not before", () => {
  const engine = new Engine("server", { settings: { initialWindowSize: 100 } });
  const peer = new ScriptedHttp2Peer(engine.connection, "client");
  engine.onStream = (log) => {
    log.onPiece = () => {};
  };
  peer.settings();
  peer.headers(1, requestFields());
  peer.data(1, 16_384);
  assertEquals(engine.accepted[0]!.bodyBytes, 16_384);
  peer.acknowledge();
  peer.forget();
  peer.data(1, 1);
  peer.wants(`RST_STREAM 1 ${ErrorCode.FLOW_CONTROL_ERROR}`);
});

Deno.test("SETTINGS that are never acknowledged end the connection at last", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  for (let id = 1; id <= 513; id += 2) peer.headers(id, requestFields());
  engine.clock.advance(SETTINGS_CHANGE_ACK_TIMEOUT_MS - 1);
  connection.onDeadline();
  assertEquals(engine.ends, []);
  engine.clock.advance(1);
  connection.onDeadline();
  assertEquals(engine.ends[0]?.code, ErrorCode.SETTINGS_TIMEOUT);
});

Deno.test("hundreds of streams come and go over the steps, and all bytes arrive", () =>
  forAll(3, (prng) => {
    const settings = { maxConcurrentStreams: 3000 };
    const { client, server, pipe } = enginePair({
      prng,
      client: { settings },
      server: { settings },
    });
    const waiting: Array<() => void> = [];
    const eat = (log: StreamLog) => {
      log.onPiece = (chunk) => {
        const { length } = chunk;
        const { stream } = log;
        waiting.push(() => stream!.consumed(length));
      };
    };
    server.onStream = eat;
    let left = 0;
    for (let index = 0; index < 700; index++) {
      const log = openLogged(client.connection);
      const { stream } = log;
      let own = prng.below(20) === 0 ? 200_000 : prng.below(20_000);
      left += own;
      const pump = () => {
        const taken = stream.write(new Uint8Array(own));
        own -= taken;
        left -= taken;
        if (own === 0) stream.end();
      };
      log.onRoom = pump;
      pump();
      if (prng.below(3) === 0) pipe.step();
      if (prng.below(9) === 0) {
        for (const consume of waiting.splice(0)) consume();
      }
    }
    for (let turn = 0; left > 0 || pipe.step(); turn++) {
      assert(turn < 100_000, `stuck with ${left} bytes`);
      pipe.step();
      for (const consume of waiting.splice(0)) consume();
    }
    assertEquals([client.ends, server.ends], [[], []]);
    assert(server.accepted.every(({ hasEnded }) => hasEnded));
    assertEquals(
      client.connection.peerSettings.initialWindowSize,
      32 * KIB,
    );
  }));
