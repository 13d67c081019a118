package main

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	clusters    = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	assignments = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	service     = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
)

// A response is what was read of one, SotW or Delta. Resources are not decoded: a thousand streams have to cost next to nothing
// beside the server that is measured.
type response struct {
	version, nonce, kind string
	resources            []resource
}

type resource struct {
	name  string // of the cluster, or of the load assignment
	value []byte
}

// octets is a codec that sends messages and receives octets.
type octets struct{}

func (octets) Name() string                  { return "proto" }
func (octets) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }
func (octets) Unmarshal(b []byte, v any) error {
	*(v.(*[]byte)) = append([]byte(nil), b...)
	return nil
}

func readSotw(b []byte) (r response) {
	fields(b, func(n protowire.Number, v []byte) {
		switch n {
		case 1:
			r.version = string(v)
		case 2:
			r.add(v)
		case 4:
			r.kind = string(v)
		case 5:
			r.nonce = string(v)
		}
	})
	return
}

func readDelta(b []byte) (r response) {
	fields(b, func(n protowire.Number, v []byte) {
		switch n {
		case 2:
			r.add(field(v, 2))
		case 4:
			r.kind = string(v)
		case 5:
			r.nonce = string(v)
		}
	})
	return
}

// add takes a google.protobuf.Any. Both types have their name in field 1.
func (r *response) add(any []byte) {
	value := field(any, 2)
	r.resources = append(r.resources, resource{string(field(value, 1)), value})
}

func field(b []byte, wanted protowire.Number) (found []byte) {
	fields(b, func(n protowire.Number, v []byte) {
		if n == wanted {
			found = v
		}
	})
	return
}

// fields gives those that have a length.
func fields(b []byte, f func(n protowire.Number, v []byte)) {
	for len(b) > 0 {
		n, t, l := protowire.ConsumeTag(b)
		if l < 0 {
			return
		}
		b = b[l:]
		if t == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b)
			f(n, v)
		}
		if l = protowire.ConsumeFieldValue(n, t, b); l < 0 {
			return
		}
		b = b[l:]
	}
}
