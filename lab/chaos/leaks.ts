/**
 * What is left when callers have gone and all is calm: no conduit, the links
 * that belong there, no more descriptors than at the beginning, and memory that
 * does not grow from fault to fault.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";
import { lowest, type Sample, slopePerMinute } from "./growth.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import type { Holding } from "../../tests/support/program/processes.ts";
import type { Program } from "./program.ts";
import type { Stage } from "./stage.ts";

/** In which conduits that were given up are forgotten. */
const CALM_MS = 15_000;
const LOOK_MS = 250;

/** Sockets of whoever asks for metrics, timers, files read again. */
const DESCRIPTOR_SLACK = 10;

/** What code that was compiled and caches that were filled may take. */
const MEMORY_SLACK_KIB = 160 * 1024;

/** A slope of less than this many minutes says nothing. */
const SLOPE_MINUTES_MIN = 10;
const SLOPE_KIB_MAX = 512;
const SAMPLES_PER_POINT = 3;

const SERVER_GAUGE =
  "konnectivity_network_proxy_server_established_connections";
const AGENT_GAUGE =
  "konnectivity_network_proxy_agent_open_endpoint_connections";

/** See the module description. */
export class LeakWatch {
  readonly #first = new Map<string, Holding>();
  /** Of one life of a program each. */
  readonly #memory = new Map<string, Sample[]>();
  readonly #startMs = Date.now();

  /** When everything is linked, and nobody has called yet. */
  constructor(private readonly stage: Stage) {
    for (const program of stage.ours) {
      this.#first.set(program.name, program.held());
    }
  }

  /** After each fault. */
  sample(): void {
    const atMinutes = (Date.now() - this.#startMs) / 60_000;
    for (const program of this.stage.ours) {
      if (!program.isRunning) continue;
      const life = `${program.name}, life ${program.lives}`;
      const samples = this.#memory.get(life) ?? [];
      samples.push({ atMinutes, value: program.held().memoryKib });
      this.#memory.set(life, samples);
    }
  }

  /** When the load has ended. */
  async judge(tally: Tally): Promise<void> {
    const { name } = this.stage.topology;
    const open = await this.#untilQuiet();
    if (open.length === 0) tally.pass(`${name}: no conduit is left`);
    else tally.fail(`${name}: conduits are left`, open.join("\n"));
    const held: string[] = [];
    const problems: string[] = [];
    for (const program of this.stage.ours) {
      const first = this.#first.get(program.name)!;
      const now = program.held();
      held.push(
        `${program.name} ${first.descriptors} to ${now.descriptors} ` +
          `descriptors, ${mib(first)} to ${mib(now)} MiB`,
      );
      problems.push(...excess(program, first, now));
    }
    problems.push(...this.#slopes());
    const line = `${name}: neither descriptors nor memory leak`;
    if (problems.length === 0) tally.pass(line);
    else tally.fail(line, problems.join("\n"));
    tally.note(`     ${held.join("; ")}`);
  }

  /** @returns Who still has conduits. */
  async #untilQuiet(): Promise<string[]> {
    const deadlineMs = Date.now() + CALM_MS;
    for (;;) {
      const open: string[] = [];
      const { servers, agents } = this.stage;
      for (const program of [...servers.values(), ...agents.values()]) {
        const name = servers.has(program.name) ? SERVER_GAUGE : AGENT_GAUGE;
        const count = await this.stage.gauge(program, name);
        if (count !== 0) open.push(`${program.name} has ${count} conduits`);
      }
      if (open.length === 0 || Date.now() > deadlineMs) return open;
      await sleep(LOOK_MS);
    }
  }

  #slopes(): string[] {
    const problems: string[] = [];
    for (const [life, samples] of this.#memory) {
      const points = lowest(samples, SAMPLES_PER_POINT);
      const minutes = (points.at(-1)?.atMinutes ?? 0) -
        (points[0]?.atMinutes ?? 0);
      if (minutes < SLOPE_MINUTES_MIN) continue;
      const slope = slopePerMinute(points);
      if (slope <= SLOPE_KIB_MAX) continue;
      problems.push(`${life}: ${slope.toFixed(0)} KiB more each minute`);
    }
    return problems;
  }
}

function excess({ name }: Program, first: Holding, now: Holding): string[] {
  const problems: string[] = [];
  if (now.descriptors > first.descriptors + DESCRIPTOR_SLACK) {
    problems.push(
      `${name} has ${now.descriptors} descriptors, had ${first.descriptors}`,
    );
  }
  if (now.memoryKib > first.memoryKib + MEMORY_SLACK_KIB) {
    problems.push(`${name} has ${mib(now)} MiB, had ${mib(first)}`);
  }
  return problems;
}

function mib({ memoryKib }: Holding): number {
  return Math.round(memoryKib / 1024);
}
