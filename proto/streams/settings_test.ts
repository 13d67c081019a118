import { assertEquals, assertThrows } from "@std/assert";
import { type Setting, SettingId } from "../frames/frame.ts";
import { ErrorCode, WireError } from "../frames/wire_error.ts";
import {
  applySettings,
  completeLocalSettings,
  LOCAL_SETTINGS_DEFAULT,
  type LocalSettings,
  PEER_SETTINGS_DEFAULT,
  type PeerSettings,
  settingsToAnnounce,
} from "./settings.ts";

function applied(...settings: Setting[]): PeerSettings {
  return applySettings(PEER_SETTINGS_DEFAULT, settings, "client");
}

Deno.test("what one end announces is what the other applies", () => {
  for (const role of ["client", "server"] as const) {
    const announced = settingsToAnnounce(LOCAL_SETTINGS_DEFAULT, role);
    const after = applySettings(PEER_SETTINGS_DEFAULT, announced, role);
    for (const key of Object.keys(after) as Array<keyof PeerSettings>) {
      assertEquals(after[key], LOCAL_SETTINGS_DEFAULT[key], key);
    }
  }
});

Deno.test("only a client says that it wants no push", () => {
  const announces = (role: "client" | "server") =>
    settingsToAnnounce(LOCAL_SETTINGS_DEFAULT, role)
      .filter(({ id }) => id === SettingId.ENABLE_PUSH);
  assertEquals(announces("client"), [{ id: SettingId.ENABLE_PUSH, value: 0 }]);
  assertEquals(announces("server"), []);
});

Deno.test("entries apply in order, and unknown ones not at all", () => {
  const id = SettingId.MAX_CONCURRENT_STREAMS;
  const after = applied({ id, value: 5 }, { id: 0x99, value: 1 }, {
    id,
    value: 7,
  });
  assertEquals(after, { ...PEER_SETTINGS_DEFAULT, maxConcurrentStreams: 7 });
});

Deno.test("values are refused exactly outside their ranges", () => {
  const { ENABLE_PUSH, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE } = SettingId;
  const legal = [
    [ENABLE_PUSH, 0],
    [ENABLE_PUSH, 1],
    [INITIAL_WINDOW_SIZE, 0],
    [INITIAL_WINDOW_SIZE, 0x7fff_ffff],
    [MAX_FRAME_SIZE, 16_384],
    [MAX_FRAME_SIZE, 0xff_ffff],
  ] as const;
  for (const [id, value] of legal) applied({ id, value });
  const illegal = [
    [ENABLE_PUSH, 2, ErrorCode.PROTOCOL_ERROR],
    [INITIAL_WINDOW_SIZE, 0x8000_0000, ErrorCode.FLOW_CONTROL_ERROR],
    [MAX_FRAME_SIZE, 16_383, ErrorCode.PROTOCOL_ERROR],
    [MAX_FRAME_SIZE, 0x100_0000, ErrorCode.PROTOCOL_ERROR],
  ] as const;
  for (const [id, value, code] of illegal) {
    const error = assertThrows(() => applied({ id, value }), WireError);
    assertEquals(error.code, code);
  }
});

Deno.test("a server that enables push breaks a rule, a client does not", () => {
  const push = [{ id: SettingId.ENABLE_PUSH, value: 1 }];
  applySettings(PEER_SETTINGS_DEFAULT, push, "client");
  assertThrows(
    () => applySettings(PEER_SETTINGS_DEFAULT, push, "server"),
    WireError,
  );
});

Deno.test("what could not be announced or kept is our mistake", () => {
  const wrong: Array<Partial<LocalSettings>> = [
    { maxFrameSize: 16_383 },
    { maxFrameSize: 0x100_0000 },
    { initialWindowSize: 0 },
    { initialWindowSize: 0x8000_0000 },
    { connectionWindow: 65_534 },
    { connectionWindow: 0x8000_0000 },
  ];
  for (const given of wrong) {
    assertThrows(() => completeLocalSettings(given), RangeError);
  }
  assertEquals(completeLocalSettings(), LOCAL_SETTINGS_DEFAULT);
});
