/**
 * Join tokens: records with the hash of a secret, and the rights that it gives.
 *
 * A token is read at each use, so removing the record revokes it. Each use is a
 * record of its own that only one request can create: two joins at once, or two
 * servers over one state, never both get the last use.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { createHash, timingSafeEqual } from "node:crypto";
import { Wildcard } from "../../policy/wildcard.ts";
import {
  formatJoinToken,
  isTokenId,
  type JoinToken,
} from "../../proto/identity/join_token.ts";
import { parseIdentifiers } from "../../proto/peer/identifiers.ts";
import { isNamePattern, NAME_PATTERN_RULE } from "./claims.ts";
import type {
  Records,
  Store,
  StoreTransaction,
} from "../../neighbours/store/store.ts";
import {
  damaged,
  parseRecord,
  readRecord,
  StoreError,
} from "../../neighbours/store/store_error.ts";

/** How many nodes a token may admit; its uses are files. */
const TOKEN_USES_MAX = 10_000;

/** The rights of a new token. */
export interface TokenRequest {
  readonly lifeMs: number;
  readonly uses: number;
  /** Which names may join with it; see `claims.ts`. */
  readonly nodePattern: string;
  /** What its nodes may call themselves besides their name: a URL query. */
  readonly identifiers: string;
  /** Its nodes wait until an operator approves them. */
  readonly needsApproval: boolean;
  readonly note: string;
}

/** The stored form of a token. */
export interface TokenRecord extends Omit<TokenRequest, "lifeMs"> {
  readonly id: string;
  /** SHA-256, hex. */
  readonly secretHash: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  readonly expiresAt: string;
}

/** A token in a list. */
export interface ListedToken extends TokenRecord {
  readonly usedBy: readonly string[];
  readonly state: "usable" | "expired" | "used up";
}

/** The node that a use of a token was for. */
export interface TokenUse {
  readonly node: string;
  /** Hash of the node's key: the same node may come again, and no other. */
  readonly publicKeySha256: string;
}

/** A use that stays used up and admits no node again. */
const NOBODY: TokenUse = { node: "", publicKeySha256: "" };

const FOLDER = "tokens";

/** Uses that are removed in one change: etcd takes 128 operations at once. */
const USES_REMOVED_AT_ONCE = 100;

const USE_FILE = /^[a-z2-7]{10}\.use-\d+$/;

/** A token that may not be used. The message is for the node that shows it. */
export class TokenRefusal extends Error {
  override readonly name = "TokenRefusal";

  readonly tunnelCode: Code = "TUN302";

  constructor(
    /** `unknown`: the shown text is no token of this server. */
    readonly reason: "unknown" | "expired" | "used-up" | "other-node",
    message: string,
  ) {
    super(message);
  }
}

/** The tokens of a state. */
export class TokenStore {
  constructor(private readonly state: Store) {}

  /**
   * Makes a token.
   *
   * @param authorityPin See `JoinToken.authorityPin`.
   * @returns The line to carry to the node; the secret is kept nowhere.
   * @throws {StoreError} When the request makes no sense.
   */
  async create(
    request: TokenRequest,
    authorityPin: string,
    nowMs: number,
  ): Promise<{ readonly token: string; readonly record: TokenRecord }> {
    checkRequest(request);
    const { lifeMs, ...content } = request;
    const id = randomId();
    const secret = crypto.getRandomValues(new Uint8Array(16))
      .toBase64({ alphabet: "base64url", omitPadding: true });
    const record: TokenRecord = {
      id,
      secretHash: hashOf(secret).toString("hex"),
      createdAt: new Date(nowMs).toISOString(),
      expiresAt: new Date(nowMs + lifeMs).toISOString(),
      ...content,
    };
    const text = JSON.stringify(record, null, 2) + "\n";
    await this.state.transact((change) => change.put(tokenKey(id), text));
    return { token: formatJoinToken({ authorityPin, id, secret }), record };
  }

  /** All tokens, oldest first. @throws {StoreError} */
  async list(nowMs: number): Promise<ListedToken[]> {
    const tokens: ListedToken[] = [];
    for (const name of await this.state.list(FOLDER)) {
      const id = /^(.+)\.json$/.exec(name)?.[1];
      if (id === undefined || !isTokenId(id)) continue;
      const record = await readToken(this.state, id);
      if (record === undefined) continue; // Revoked just now.
      const usedBy = (await usesOf(this.state, id))
        .map(({ node }) => node || "(forgotten)");
      tokens.push({ ...record, usedBy, state: stateOf(record, usedBy, nowMs) });
    }
    return tokens.sort((a, b) => a.createdAt < b.createdAt ? -1 : 1);
  }

  /** @returns Whether there was such a token. */
  async revoke(id: string): Promise<boolean> {
    if (!isTokenId(id)) return false;
    const state = this.state;
    const existed = await state.transact((change) =>
      change.remove(tokenKey(id))
    );
    const names = await useNames(state, id);
    for (let at = 0; at < names.length; at += USES_REMOVED_AT_ONCE) {
      await state.transact(async (change) => {
        for (const name of names.slice(at, at + USES_REMOVED_AT_ONCE)) {
          await change.remove(`${FOLDER}/${name}`);
        }
      });
    }
    return existed;
  }

  /**
   * Whether a token admits this node. It is not used up.
   *
   * @param records A change, for certainty; else the last known records.
   * @throws {TokenRefusal | StoreError}
   */
  async check(
    token: JoinToken,
    use: TokenUse,
    nowMs: number,
    records: Records = this.state,
  ): Promise<TokenRecord> {
    const record = await readToken(records, token.id);
    if (record === undefined || !isSecret(token.secret, record.secretHash)) {
      throw new TokenRefusal(
        "unknown",
        "Cannot join: this token is not known here (mistyped, revoked, or of " +
          "another server); `tunnel token create` on the server makes a new one",
      );
    }
    if (!new Wildcard(record.nodePattern).matches(use.node)) {
      throw new TokenRefusal(
        "other-node",
        `Cannot join as ${use.node}: this token is for nodes named ` +
          `${record.nodePattern}; use such a name, or another token`,
      );
    }
    const state = stateOf(record, await useNames(records, token.id), nowMs);
    // An answer that was lost: asking again is not another use.
    if (state === "usable" || await isUsedBy(records, record, use)) {
      return record;
    }
    if (state === "expired") {
      throw new TokenRefusal(
        "expired",
        `Cannot join: this token expired at ${record.expiresAt}; ` +
          "`tunnel token create` on the server makes a new one",
      );
    }
    throw usedUp(record);
  }

  /**
   * Uses the token up, once. For a token that `check` has passed.
   *
   * @throws {TokenRefusal} When others were faster.
   */
  async claim(
    record: TokenRecord,
    use: TokenUse,
    change: StoreTransaction,
  ): Promise<void> {
    const taken = new Set(await useNames(change, record.id));
    for (let index = 1; index <= record.uses; index++) {
      const name = `${record.id}.use-${index}`;
      if (taken.has(name)) continue;
      const text = JSON.stringify(use) + "\n";
      if (await change.create(`${FOLDER}/${name}`, text)) return;
    }
    // A crash between this and the node's record may have left one.
    if (!await isUsedBy(change, record, use)) throw usedUp(record);
  }

  /**
   * Takes the node's name out of its uses: they stay used up, and it cannot
   * come again by them. For a node that is forgotten.
   */
  async spend(node: string, change: StoreTransaction): Promise<void> {
    for (const name of await change.list(FOLDER)) {
      if (!USE_FILE.test(name)) continue;
      const key = `${FOLDER}/${name}`;
      const text = await readRecord(change, key, "look");
      if (text === undefined) continue; // Revoked just now.
      const use = parseRecord(change, key, text) as Partial<TokenUse> | null;
      if (use?.node !== node) continue;
      await change.put(key, JSON.stringify(NOBODY) + "\n");
    }
  }
}

function tokenKey(id: string): string {
  return `${FOLDER}/${id}.json`;
}

async function readToken(
  records: Records,
  id: string,
): Promise<TokenRecord | undefined> {
  const key = tokenKey(id);
  const text = await readRecord(records, key);
  if (text === undefined) return undefined;
  const record = parseRecord(records, key, text) as Partial<TokenRecord>;
  const isWhole = record?.id === id &&
    typeof record.secretHash === "string" &&
    /^[0-9a-f]{64}$/.test(record.secretHash) &&
    typeof record.uses === "number" &&
    typeof record.nodePattern === "string" &&
    typeof record.identifiers === "string" &&
    typeof record.needsApproval === "boolean" &&
    typeof record.note === "string" &&
    !Number.isNaN(Date.parse(record.expiresAt ?? ""));
  if (!isWhole) throw damaged(records, key, "it is no whole token");
  return record as TokenRecord;
}

async function isUsedBy(
  records: Records,
  { id }: TokenRecord,
  use: TokenUse,
): Promise<boolean> {
  const uses = await usesOf(records, id);
  return uses.some(({ node, publicKeySha256 }) =>
    node === use.node && publicKeySha256 === use.publicKeySha256
  );
}

async function usesOf(records: Records, id: string): Promise<TokenUse[]> {
  const uses: TokenUse[] = [];
  for (const name of await useNames(records, id)) {
    const key = `${FOLDER}/${name}`;
    const text = await readRecord(records, key, "look");
    if (text === undefined) continue; // Revoked just now.
    const use = parseRecord(records, key, text) as Partial<TokenUse> | null;
    if (typeof use?.node !== "string") {
      throw damaged(records, key, "it does not say whom the use was for");
    }
    uses.push(use as TokenUse);
  }
  return uses;
}

function useNames(
  records: Records,
  id: string,
): Promise<readonly string[]> {
  return records.list(FOLDER, `${id}.use-`);
}

function checkRequest({ nodePattern, identifiers, uses }: TokenRequest): void {
  if (!isNamePattern(nodePattern)) {
    throw new StoreError(
      `Cannot make a token for nodes named "${nodePattern}": wanted ` +
        NAME_PATTERN_RULE,
      "TUN101",
    );
  }
  if (uses < 1 || uses > TOKEN_USES_MAX) {
    throw new StoreError(
      `Cannot make a token for ${uses} uses: 1 to ${TOKEN_USES_MAX} are ` +
        "possible",
      "TUN101",
    );
  }
  parseIdentifiers(identifiers, "flag");
}

function stateOf(
  record: TokenRecord,
  uses: readonly unknown[],
  nowMs: number,
): ListedToken["state"] {
  if (uses.length >= record.uses) return "used up";
  return nowMs >= Date.parse(record.expiresAt) ? "expired" : "usable";
}

function usedUp({ uses }: TokenRecord): TokenRefusal {
  return new TokenRefusal(
    "used-up",
    `Cannot join: this token was good for ${uses} ${
      uses === 1 ? "node" : "nodes"
    } and is used up; \`tunnel token create\` on the server makes a new one`,
  );
}

/** Takes as long for a wrong secret as for the right one. */
function isSecret(secret: string, hash: string): boolean {
  return timingSafeEqual(hashOf(secret), Uint8Array.fromHex(hash));
}

function hashOf(secret: string) {
  return createHash("sha256").update(secret).digest();
}

/** 10 of base32's letters: 50 bits. */
function randomId(): string {
  const letters = "abcdefghijklmnopqrstuvwxyz234567";
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return [...bytes].map((byte) => letters[byte & 31]).join("");
}
