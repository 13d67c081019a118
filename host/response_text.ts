/**
 * The body of an HTTP answer as text, up to a length.
 *
 * @module
 */

/**
 * Reads it all.
 *
 * @param octetsMax What a peer may make us keep; the rest is not read.
 * @returns Nothing if it is longer.
 * @throws As `fetch`, when the connection fails.
 */
export async function responseText(
  response: Response,
  octetsMax: number,
): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let octets = 0;
  let text = "";
  for await (const chunk of response.body ?? []) {
    octets += chunk.length;
    if (octets > octetsMax) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
