/**
 * Where sockets read their datagrams into: 64 KiB each, of which the system
 * gives a page for short ones.
 *
 * Memory of a buffer that is done with is the next one's, without being cleared:
 * a buffer of its own for each socket would be cleared, and so be given all its
 * pages, whenever its place had been another's. That is 64 KiB for a session
 * over which a hundred bytes go.
 *
 * @module
 */

/** The longest datagram there is, rounded up (RFC 768). */
const BUFFER_BYTES = 65_536;

/** Together they are large enough to be fresh memory of the kernel. */
const BUFFERS_PER_BLOCK = 64;

/** Buffers that were allocated together, and those of them that are free. */
interface Block {
  readonly free: Uint8Array<ArrayBuffer>[];
}

/** Blocks in which there is room; the last one is used up first. */
const roomy: Block[] = [];
const blocks = new WeakMap<ArrayBuffer, Block>();

/** A buffer; what is in it is anything. */
export function takeBuffer(): Uint8Array<ArrayBuffer> {
  let block = roomy.at(-1);
  if (block === undefined) roomy.push(block = allocate());
  const buffer = block.free.pop()!;
  if (block.free.length === 0) roomy.pop();
  return buffer;
}

/** Takes one back that is not read into any more. */
export function giveBuffer(buffer: Uint8Array<ArrayBuffer>): void {
  const block = blocks.get(buffer.buffer)!;
  if (block.free.length === 0) roomy.push(block);
  block.free.push(buffer);
  // One empty block is kept; the pages of others go back to the system.
  if (block.free.length < BUFFERS_PER_BLOCK || roomy.length === 1) return;
  roomy.splice(roomy.indexOf(block), 1);
}

function allocate(): Block {
  const memory = new ArrayBuffer(BUFFERS_PER_BLOCK * BUFFER_BYTES);
  const free = Array.from(
    { length: BUFFERS_PER_BLOCK },
    (_, index) => new Uint8Array(memory, index * BUFFER_BYTES, BUFFER_BYTES),
  );
  const block = { free };
  blocks.set(memory, block);
  return block;
}
