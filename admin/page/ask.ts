/**
 * Questions to the server that this page came from, and actions that it is
 * asked to do.
 *
 * @module
 */

/** An answer that is no success. */
export class AskError extends Error {
  /** 0: there was no answer. */
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, message: string, code?: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** How long an answer may take; a list of ten thousand is sent in less. */
const ANSWER_MS = 15_000;

/** GET */
export function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>(path, { method: "GET" }, signal);
}

/** POST. The header is what a page of another host cannot send. */
export function act<T>(path: string, body: unknown = {}): Promise<T> {
  return request<T>(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-tunnel-admin": "1" },
    body: JSON.stringify(body),
  });
}

async function request<T>(
  path: string,
  init: RequestInit,
  signal?: AbortSignal,
): Promise<T> {
  const late = AbortSignal.timeout(ANSWER_MS);
  let response: Response;
  try {
    response = await fetch(path, {
      ...init,
      credentials: "same-origin",
      signal: signal === undefined ? late : AbortSignal.any([late, signal]),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new AskError(0, "The server does not answer");
  }
  if (response.ok) return await response.json();
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<AskError> {
  const { status } = response;
  const text = await response.text().catch(() => "");
  try {
    const { message, code } = JSON.parse(text);
    if (typeof message === "string") {
      return new AskError(
        status,
        message,
        typeof code === "string" ? code : undefined,
      );
    }
  } catch {
    // Not JSON: the plain text, or nothing.
  }
  return new AskError(status, text.trim() || `The server answers ${status}`);
}
