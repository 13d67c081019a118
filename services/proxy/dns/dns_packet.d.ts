/** The used part of `dns-packet`, which has no types of its own. */

declare namespace packet {
  interface Question {
    readonly name: string;
    /** `A`, or `UNKNOWN_65` for types that the library does not know. */
    readonly type: string;
    readonly class?: string;
  }

  interface Named {
    readonly name: string;
    readonly ttl: number;
  }

  interface AddressAnswer extends Named {
    readonly type: "A" | "AAAA" | "CNAME";
    readonly data: string;
  }

  interface SrvAnswer extends Named {
    readonly type: "SRV";
    readonly data:
      & Readonly<Record<"priority" | "weight" | "port", number>>
      & { readonly target: string };
  }

  interface SoaAnswer extends Named {
    readonly type: "SOA";
    readonly data:
      & Readonly<Record<"mname" | "rname", string>>
      & Readonly<
        Record<"serial" | "refresh" | "retry" | "expire" | "minimum", number>
      >;
  }

  interface OptAnswer {
    readonly type: "OPT";
    readonly name: string;
    readonly udpPayloadSize: number;
    readonly extendedRcode: number;
    readonly ednsVersion: number;
    readonly flags: number;
    readonly options: readonly unknown[];
  }

  type Answer =
    | AddressAnswer
    | SrvAnswer
    | SoaAnswer
    | OptAnswer;

  interface Packet {
    readonly type: "query" | "response";
    readonly id?: number;
    readonly flags?: number;
    readonly questions?: readonly Question[];
    readonly answers?: readonly Answer[];
    readonly authorities?: readonly Answer[];
    readonly additionals?: readonly Answer[];
  }

  /** All lists are there; a record may be of a type that is not named here. */
  interface DecodedPacket extends Required<Packet> {
    readonly flag_aa: boolean;
    readonly flag_tc: boolean;
    readonly flag_rd: boolean;
    readonly rcode: string;
    readonly opcode: string;
  }
}

declare const packet: {
  encode(packet: packet.Packet): Uint8Array;
  /** @throws {Error} Whatever it cannot read; of any class. */
  decode(bytes: Uint8Array): packet.DecodedPacket;
};

export default packet;
