package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	server "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	status "google.golang.org/genproto/googleapis/rpc/status"
)

// An entry is one line of JSON: what a client asked or was sent.
type entry struct {
	Event     string   `json:"event"` // open, close, request, response
	Stream    int64    `json:"stream"`
	Node      string   `json:"node,omitempty"`
	Agent     string   `json:"agent,omitempty"`
	Type      string   `json:"type,omitempty"` // Cluster, ClusterLoadAssignment, ...
	Version   string   `json:"version,omitempty"`
	Nonce     string   `json:"nonce,omitempty"`
	Names     []string `json:"names,omitempty"`
	Resources int      `json:"resources,omitempty"`
	Error     string   `json:"error,omitempty"` // of a NACK
}

// journal gives callbacks that print everything. Ids of streams are of both protocols, so they are made unlike.
func journal() server.CallbackFuncs {
	var lock sync.Mutex
	lines := json.NewEncoder(os.Stdout)
	nodes := map[int64]*corev3.Node{} // the library fills it in later, of its own
	print := func(e entry) {
		lock.Lock()
		defer lock.Unlock()
		n := nodes[e.Stream]
		e.Node, e.Agent = n.GetId(), n.GetUserAgentName()
		if e.Event == "close" {
			delete(nodes, e.Stream)
		}
		lines.Encode(e)
	}
	introduce := func(stream int64, n *corev3.Node) {
		lock.Lock()
		defer lock.Unlock()
		if n != nil {
			nodes[stream] = n
		}
	}
	delta := func(id int64) int64 { return -id }
	return server.CallbackFuncs{
		StreamOpenFunc:   func(_ context.Context, id int64, _ string) error { print(entry{Event: "open", Stream: id}); return nil },
		StreamClosedFunc: func(id int64, _ *corev3.Node) { print(entry{Event: "close", Stream: id}) },
		StreamRequestFunc: func(id int64, r *discovery.DiscoveryRequest) error {
			introduce(id, r.Node)
			print(entry{Event: "request", Stream: id, Type: short(r.TypeUrl), Version: r.VersionInfo, Nonce: r.ResponseNonce,
				Names: r.ResourceNames, Error: reason(r.ErrorDetail)})
			return nil
		},
		StreamResponseFunc: func(_ context.Context, id int64, _ *discovery.DiscoveryRequest, r *discovery.DiscoveryResponse) {
			print(entry{Event: "response", Stream: id, Type: short(r.TypeUrl), Version: r.VersionInfo, Nonce: r.Nonce, Resources: len(r.Resources)})
		},
		DeltaStreamOpenFunc: func(_ context.Context, id int64, _ string) error {
			print(entry{Event: "open", Stream: delta(id)})
			return nil
		},
		DeltaStreamClosedFunc: func(id int64, _ *corev3.Node) { print(entry{Event: "close", Stream: delta(id)}) },
		StreamDeltaRequestFunc: func(id int64, r *discovery.DeltaDiscoveryRequest) error {
			introduce(delta(id), r.Node)
			print(entry{Event: "request", Stream: delta(id), Type: short(r.TypeUrl), Nonce: r.ResponseNonce,
				Names: r.ResourceNamesSubscribe, Error: reason(r.ErrorDetail)})
			return nil
		},
		StreamDeltaResponseFunc: func(id int64, _ *discovery.DeltaDiscoveryRequest, r *discovery.DeltaDiscoveryResponse) {
			print(entry{Event: "response", Stream: delta(id), Type: short(r.TypeUrl), Version: r.SystemVersionInfo, Nonce: r.Nonce,
				Names: r.RemovedResources, Resources: len(r.Resources)})
		},
	}
}

func short(url string) string { return url[strings.LastIndexByte(url, '.')+1:] }

func reason(s *status.Status) string {
	if s == nil || s.Message != "" {
		return s.GetMessage()
	}
	return "no reason"
}
