import { assertEquals } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  CLEAN,
  joined,
  type JoinedConduits,
  pattern,
} from "../../tests/support/memory/joined_conduits.ts";
import { sameBytes } from "../bytes/byte_arrays.ts";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";

Deno.test("any schedule: order kept, nothing lost, memory bounded", async () => {
  await forAll(100, async (prng) => {
    const schedule = new Schedule(prng);
    for (let step = 0; step < 60 && !schedule.isBroken; step++) {
      schedule.step();
      if (prng.below(3) > 0) await settled();
      schedule.checkOnTheWay();
    }
    await schedule.finish();
  });
});

type Side = "left" | "right";

/** Random things done to both ends, and what must hold all along. */
class Schedule {
  readonly #windowBytes: number;
  readonly #ends: JoinedConduits;
  readonly #sent = { left: 0, right: 0 };
  readonly #finished = { left: false, right: false };
  #broken: "reset" | "lost" | undefined;

  constructor(private readonly prng: Prng) {
    this.#windowBytes = 1 + prng.below(3_000);
    this.#ends = joined({
      windowBytes: this.#windowBytes,
      cut: (bytes) => 1 + prng.below(bytes),
    });
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  step(): void {
    const side: Side = this.prng.pick(["left", "right"] as const);
    const { left, right, leftLine, rightLine, a, b } = this.#ends;
    const probe = side === "left" ? left : right;
    const paths = [leftLine, rightLine, a, b];
    switch (this.prng.below(9)) {
      case 0:
        return probe.stopReading();
      case 1:
        return void probe.startReading();
      case 2:
        return this.prng.pick(paths).stall();
      case 3:
        return paths.forEach((path) => path.resume());
      case 4:
        if (this.prng.below(5) === 0) this.#finishSide(side);
        return;
      case 5:
        if (this.prng.below(25) === 0) this.#break(side);
        return;
      default:
        this.#send(side);
    }
  }

  checkOnTheWay(): void {
    const { left, right, a, b } = this.#ends;
    for (const conduit of [a, b]) {
      assertEquals(conduit.unconsumedBytes <= this.#windowBytes, true);
    }
    assertEquals(right.receivedBytes <= this.#sent.left, true);
    assertEquals(left.receivedBytes <= this.#sent.right, true);
    if (right.hasEnded) assertEquals(right.receivedBytes, this.#sent.left);
    if (left.hasEnded) assertEquals(left.receivedBytes, this.#sent.right);
  }

  /** Lets everything go and checks the outcome. */
  async finish(): Promise<void> {
    const { left, right, leftLine, rightLine, a, b } = this.#ends;
    for (const path of [leftLine, rightLine, a, b]) path.resume();
    for (const side of ["left", "right"] as const) {
      this.#ends[side].startReading();
      if (!this.isBroken) this.#finishSide(side);
    }
    const { end, bytesAToB, bytesBToA } = await this.#ends.result;
    if (!this.isBroken || end.kind === "clean") {
      assertEquals([left.end, right.end, end], [CLEAN, CLEAN, CLEAN]);
      assertEquals([bytesAToB, bytesBToA], [
        this.#sent.left,
        this.#sent.right,
      ]);
      assertEquals(right.receivedBytes, bytesAToB);
      assertEquals(left.receivedBytes, bytesBToA);
    } else {
      assertEquals(end, { kind: this.#broken, reason: "broken" });
    }
    for (const { bytes } of [left, right]) {
      assertEquals(sameBytes(bytes, pattern(bytes.length)), true);
    }
  }

  #send(side: Side): void {
    if (this.#finished[side]) return;
    const bytes = this.prng.below(5_000);
    this.#ends[side].send(pattern(bytes, this.#sent[side]));
    this.#sent[side] += bytes;
  }

  #finishSide(side: Side): void {
    if (this.#finished[side]) return;
    this.#finished[side] = true;
    this.#ends[side].finish();
  }

  #break(side: Side): void {
    this.#broken = this.prng.pick(["reset", "lost"] as const);
    if (this.#broken === "reset") this.#ends[side].reset("broken");
    else if (side === "left") this.#ends.leftLine.lose("broken");
    else this.#ends.rightLine.lose("broken");
  }
}
