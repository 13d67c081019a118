package main

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// rawCodec passes []byte through and leaves messages to protobuf, so that the
// test service needs no generated code and the health service still works.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case *[]byte:
		return *v, nil
	case proto.Message:
		return proto.Marshal(v)
	}
	return nil, fmt.Errorf("cannot marshal a %T", v)
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = append([]byte(nil), data...)
		return nil
	case proto.Message:
		return proto.Unmarshal(data, v)
	}
	return fmt.Errorf("cannot unmarshal into a %T", v)
}
