/**
 * Messages that carry descriptors to another process (unix(7), SCM_RIGHTS).
 *
 * @module
 */

import { lastError, type LibC } from "./libc.ts";
import { Errno, pointerTo, pointTo, systemError } from "./system_error.ts";

/** Descriptors that one message carries; the kernel allows 253. */
export const DESCRIPTORS_MAX = 128;

/** The longest text of a message. */
export const DESCRIPTOR_MESSAGE_BYTES_MAX = 16_384;

const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const MSG_CMSG_CLOEXEC = 0x40000000;
const MSG_TRUNC = 0x20;
const MSG_CTRUNC = 0x8;

/**
 * Size of `struct msghdr` in words of 32 bits, and the offsets of its fields.
 */
const HEADER_WORDS = 14;
const NAME_AT = 0;
const NAME_LENGTH_AT = 2;
const PIECES_AT = 4;
const PIECE_COUNT_AT = 6;
const CONTROL_AT = 8;
const CONTROL_LENGTH_AT = 10;
const FLAGS_AT = 12;

/** `struct cmsghdr`: length (64 bits), level, type; descriptors follow. */
const CONTROL_HEAD_WORDS = 4;
const CONTROL_WORDS = CONTROL_HEAD_WORDS + DESCRIPTORS_MAX;

/** The content of one message. */
export interface DescriptorMessage {
  readonly text: string;
  /** Open here, and the receiver's to close. */
  readonly descriptors: readonly number[];
}

/**
 * Sends one message.
 *
 * @param to The address of the receiver, for a socket that is not connected.
 * @returns False: there is no room just now.
 * @throws A system error with its `code`.
 */
export function sendDescriptors(
  library: LibC,
  socket: number,
  { text, descriptors }: DescriptorMessage,
  to?: Uint8Array<ArrayBuffer>,
): boolean {
  if (descriptors.length > DESCRIPTORS_MAX) {
    throw new RangeError("There are too many descriptors for one message");
  }
  const frame = sending ??= new Frame();
  const { read, written } = ENCODER.encodeInto(text, frame.text);
  if (read < text.length) throw new RangeError("The message is too long");
  frame.address(written, descriptors.length);
  const { control } = frame;
  control[0] = 16 + 4 * descriptors.length;
  control[1] = 0;
  control[2] = SOL_SOCKET;
  control[3] = SCM_RIGHTS;
  control.set(descriptors, CONTROL_HEAD_WORDS);
  pointTo(frame.header, NAME_AT, to === undefined ? 0 : pointerTo(to));
  frame.header[NAME_LENGTH_AT] = to?.length ?? 0;
  const sent = library.sendmsg(
    socket,
    frame.headerBytes,
    MSG_DONTWAIT | MSG_NOSIGNAL,
  );
  if (sent >= 0) return true;
  const number = lastError(library);
  if (number === Errno.EAGAIN) return false;
  throw systemError(number);
}

/**
 * Reads one message.
 *
 * @returns `undefined`: there is none now; `null`: the peer has gone.
 * @throws A system error with its `code`.
 */
export function receiveDescriptors(
  library: LibC,
  socket: number,
): DescriptorMessage | null | undefined {
  const frame = receiving ??= new Frame();
  frame.control[0] = 0;
  frame.address(DESCRIPTOR_MESSAGE_BYTES_MAX, DESCRIPTORS_MAX);
  const count = Number(
    library.recvmsg(
      socket,
      frame.headerBytes,
      MSG_DONTWAIT | MSG_CMSG_CLOEXEC,
    ),
  );
  if (count < 0) {
    const number = lastError(library);
    if (number === Errno.EAGAIN) return undefined;
    throw systemError(number);
  }
  const descriptors = frame.descriptors();
  const isWhole = (frame.header[FLAGS_AT]! & (MSG_TRUNC | MSG_CTRUNC)) === 0;
  if (count === 0 || !isWhole) {
    for (const descriptor of descriptors) library.close(descriptor);
    if (isWhole) return null;
    throw new RangeError("The message is too long");
  }
  const text = DECODER.decode(frame.text.subarray(0, count));
  return { text, descriptors };
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** The memory of one call; one for all, as each is dealt with at once. */
class Frame {
  readonly text = new Uint8Array(DESCRIPTOR_MESSAGE_BYTES_MAX);
  readonly control = new Uint32Array(CONTROL_WORDS);
  readonly header = new Uint32Array(HEADER_WORDS);
  readonly headerBytes = new Uint8Array(this.header.buffer);
  /** V8 moves small arrays about, unless they have a buffer from the start. */
  readonly #piece = new Uint32Array(new ArrayBuffer(16));
  readonly #controlAt = pointerTo(this.control);

  constructor() {
    pointTo(this.#piece, 0, pointerTo(this.text));
    pointTo(this.header, PIECES_AT, pointerTo(this.#piece));
    this.header[PIECE_COUNT_AT] = 1;
  }

  /** Sets the lengths, for reading or writing. */
  address(bytes: number, descriptors: number): void {
    this.#piece[2] = bytes;
    const hasControl = descriptors > 0;
    pointTo(this.header, CONTROL_AT, hasControl ? this.#controlAt : 0);
    // CMSG_SPACE: rounded up to a word of 64 bits.
    this.header[CONTROL_LENGTH_AT] = hasControl
      ? 16 + 8 * Math.ceil(descriptors / 2)
      : 0;
  }

  /** What the kernel has put into the control message. */
  descriptors(): number[] {
    const { control, header } = this;
    const length = Math.min(header[CONTROL_LENGTH_AT]!, control[0]!);
    const isRights = length >= 16 && control[2] === SOL_SOCKET &&
      control[3] === SCM_RIGHTS;
    if (!isRights) return [];
    const end = CONTROL_HEAD_WORDS + Math.floor((length - 16) / 4);
    return [
      ...new Int32Array(control.buffer).subarray(CONTROL_HEAD_WORDS, end),
    ];
  }
}

let sending: Frame | undefined;
let receiving: Frame | undefined;
