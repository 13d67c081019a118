/**
 * How smoothly something scrolls, by the frames that a browser shows.
 *
 * @module
 */

import type { CDPSession, Page } from "playwright-core";

/** Times of frames, in milliseconds. */
export interface ScrollFigures {
  readonly frames: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Frames that came a whole frame late, by whomever's fault. */
  readonly dropped: number;
  /** What the page's own thread worked for each, by its own clock. */
  readonly workMs: number;
}

/** Frames for the whole way: twelve seconds at 60 a second. */
const FRAMES = 400;

/** Scrolls from the top to the end, a step each frame. */
export async function measureScroll(
  page: Page,
  selector: string,
): Promise<ScrollFigures> {
  const work = await PageWork.begin(page);
  const deltas = await page.evaluate(`new Promise((resolve) => {
    const box = document.querySelector(${JSON.stringify(selector)});
    const step = (box.scrollHeight - box.clientHeight) / ${FRAMES};
    const deltas = [];
    let last;
    let at = 0;
    const frame = (now) => {
      if (last !== undefined) deltas.push(now - last);
      last = now;
      at++;
      box.scrollTop = Math.ceil(at * step);
      if (at > ${FRAMES}) resolve(deltas);
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  })`) as number[];
  const sorted = deltas.toSorted((a, b) => a - b);
  const at = (part: number) =>
    Number(sorted[Math.floor((sorted.length - 1) * part)]!.toFixed(1));
  const medianMs = at(0.5);
  const workMs = Number((await work.end() / deltas.length).toFixed(1));
  return {
    frames: deltas.length,
    medianMs,
    p99Ms: at(0.99),
    maxMs: at(1),
    dropped: deltas.filter((delta) => delta > medianMs * 1.75).length,
    workMs,
  };
}

/** Processor time of a page's thread: other programs do not lengthen it. */
class PageWork {
  private constructor(
    private readonly session: CDPSession,
    private readonly fromMs: number,
  ) {}

  static async begin(page: Page): Promise<PageWork> {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    return new PageWork(session, await taskMs(session));
  }

  async end(): Promise<number> {
    const spent = await taskMs(this.session) - this.fromMs;
    await this.session.detach();
    return spent;
  }
}

async function taskMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration")!.value * 1_000;
}
