/**
 * `tunnel top` on a terminal: asks each second, and at once when a person wants
 * something else.
 *
 * @module
 */

import {
  type AdminClient,
  AdminError,
} from "../../../admin/ask/admin_client.ts";
import {
  type ActionAnswer,
  ADMIN_ACTIONS,
  ADMIN_PATHS,
} from "../../../proto/admin/api.ts";
import type { ConduitsAnswer } from "../../../proto/admin/node_answer.ts";
import type { StatusAnswer } from "../../../proto/admin/status_answer.ts";
import {
  conduitsPath,
  joinedFacts,
} from "../../../admin/ask/asked_conduits.ts";
import type { Page } from "../../../admin/ask/page.ts";
import {
  type Effect,
  type Key,
  press,
  type TopState,
} from "../../../admin/ask/top_state.ts";
import { answersOf } from "../asked.ts";
import type { FullScreen } from "./terminal.ts";
import {
  roomIn,
  screenLines,
  type TopFacts,
} from "../../../admin/ask/top_text.ts";

/** Rows that are asked for, so that keys have somewhere to go. */
export const ROWS_ASKED = 200;

/** The present facts. */
export async function topFacts(
  client: Pick<AdminClient, "get">,
  { sort, node }: Pick<TopState, "sort" | "node">,
  limit: number,
): Promise<TopFacts> {
  const [status, conduits] = await Promise.all([
    client.get<StatusAnswer>(ADMIN_PATHS.status),
    client.get<ConduitsAnswer>(conduitsPath({ sort, node, limit })),
  ]);
  return { status, conduits };
}

/** What it needs. */
interface LiveTopOptions {
  /** Facts of the program, or of each of its workers. */
  readonly clients: readonly Pick<AdminClient, "get" | "post">[];
  readonly screen: FullScreen;
  readonly pageOf: () => Page;
  readonly intervalMs: number;
  readonly first: TopState;
  readonly firstFacts: TopFacts;
}

export class LiveTop {
  readonly #over = Promise.withResolvers<void>();
  #state: TopState;
  #facts: TopFacts;
  #isOver = false;
  /** Which answer is the newest one that was asked for. */
  #asked = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly options: LiveTopOptions) {
    this.#state = options.first;
    this.#facts = options.firstFacts;
  }

  /** Settles when the user quits. */
  async run(): Promise<void> {
    const { screen } = this.options;
    try {
      screen.open({
        keys: (keys) =>
          this.#guarded(() => keys.forEach((key) => this.#key(key))),
        resized: () => this.#guarded(() => this.#draw()),
        ended: () => this.#end(),
      });
      this.#draw();
      this.#later();
      await this.#over.promise;
    } finally {
      this.#isOver = true;
      clearTimeout(this.#timer);
      screen.close();
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#over.resolve();
  }

  /** An internal error ends it, and the terminal is restored. */
  #guarded(act: () => void): void {
    if (this.#isOver) return;
    try {
      act();
    } catch (error) {
      this.#over.reject(error);
    }
  }

  #key(key: Key): void {
    if (this.#isOver) return;
    const { conduits } = this.#facts.conduits;
    const room = roomIn(this.options.screen.size.rows);
    const { state, effect } = press(this.#state, key, conduits, room);
    this.#state = state;
    this.#draw();
    if (effect !== undefined) this.#do(effect);
  }

  #do(effect: Effect): void {
    switch (effect.kind) {
      case "quit":
        return this.#end();
      case "ask":
        return this.#askNow();
      case "kill":
        this.#kill(effect.id).catch((error) => this.#over.reject(error));
    }
  }

  async #kill(id: string): Promise<void> {
    const path = `${ADMIN_PATHS.conduit}${encodeURIComponent(id)}`;
    const said = await this.#trying(async () => {
      // Of several workers, the one that knows it.
      const [client] = await answersOf(this.options.clients, async (one) => {
        if (this.options.clients.length > 1) await one.get(path);
        return one;
      });
      const { message } = await client!
        .post<ActionAnswer>(`${path}/${ADMIN_ACTIONS.kill}`);
      return message || `ended ${id}`;
    });
    if (this.#isOver) return;
    this.#state = { ...this.#state, said };
    this.#draw();
    this.#askNow();
  }

  /** What those say that answer. */
  async #answers(): Promise<TopFacts> {
    const all = await answersOf(
      this.options.clients,
      (client) => topFacts(client, this.#state, ROWS_ASKED),
    );
    return joinedFacts(all, this.#state.sort, ROWS_ASKED);
  }

  /** The text of an answer, or why there is none. */
  async #trying(act: () => Promise<string>): Promise<string> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof AdminError) return error.message;
      throw error;
    }
  }

  #later(): void {
    clearTimeout(this.#timer);
    const { intervalMs } = this.options;
    this.#timer = setTimeout(() => this.#askNow(), intervalMs);
  }

  #askNow(): void {
    clearTimeout(this.#timer);
    this.#ask().catch((error) => this.#over.reject(error));
  }

  async #ask(): Promise<void> {
    const number = ++this.#asked;
    const said = await this.#trying(async () => {
      const facts = await this.#answers();
      // A person may want something else meanwhile.
      if (number === this.#asked) this.#facts = facts;
      return "";
    });
    if (this.#isOver || number !== this.#asked) return;
    if (said !== "") this.#state = { ...this.#state, said };
    this.#draw();
    this.#later();
  }

  #draw(): void {
    if (this.#isOver) return;
    const { screen, pageOf } = this.options;
    const page = pageOf();
    const lines = screenLines(page, screen.size.rows, this.#state, this.#facts);
    screen.draw(lines);
  }
}
