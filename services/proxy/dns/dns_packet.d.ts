/** What is used of `dns-packet`, which brings no types of its own. */

declare namespace packet {
  interface Question {
    readonly name: string;
    /** `A`, or `UNKNOWN_65` for types that the library does not know. */
    readonly type: string;
    readonly class?: string;
  }

  interface AddressAnswer {
    readonly type: "A" | "AAAA";
    readonly name: string;
    readonly ttl: number;
    readonly data: string;
  }

  interface AliasAnswer {
    readonly type: "CNAME";
    readonly name: string;
    readonly ttl: number;
    readonly data: string;
  }

  interface SrvAnswer {
    readonly type: "SRV";
    readonly name: string;
    readonly ttl: number;
    readonly data: {
      readonly priority: number;
      readonly weight: number;
      readonly port: number;
      readonly target: string;
    };
  }

  interface SoaAnswer {
    readonly type: "SOA";
    readonly name: string;
    readonly ttl: number;
    readonly data: {
      readonly mname: string;
      readonly rname: string;
      readonly serial: number;
      readonly refresh: number;
      readonly retry: number;
      readonly expire: number;
      readonly minimum: number;
    };
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
    | AliasAnswer
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
