package main

import (
	"context"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// An applier makes a cache serve a catalog in place of the last.
type applier func(catalog) error

type byKind struct{}

func (byKind) ID(n *corev3.Node) string { return string(kindOf(n)) }

// snapshotCache is what most users of the library have: any change of a type sends all of it over SotW.
func snapshotCache() (cache.Cache, applier) {
	served := cache.NewSnapshotCache(false, byKind{}, nil)
	return served, func(c catalog) error {
		for _, k := range kinds {
			if err := served.SetSnapshot(context.Background(), string(k), snapshotOf(c, k)); err != nil {
				return err
			}
		}
		return nil
	}
}

// linearCache sends what changed and no more: one cache for each type and kind, joined.
func linearCache() (cache.Cache, applier) {
	mux := &cache.MuxCache{
		Classify:      func(r *cache.Request) string { return string(kindOf(r.GetNode())) + r.GetTypeUrl() },
		ClassifyDelta: func(r *cache.DeltaRequest) string { return string(kindOf(r.GetNode())) + r.GetTypeUrl() },
		Caches:        map[string]cache.Cache{},
	}
	parts := map[string]*part{}
	for _, k := range kinds {
		for _, t := range typesServed {
			p := &part{cache: cache.NewLinearCache(t)}
			parts[string(k)+t], mux.Caches[string(k)+t] = p, p.cache
		}
	}
	return mux, func(c catalog) error {
		for _, k := range kinds {
			s := snapshotOf(c, k)
			for _, t := range []resource.Type(typesServed) {
				if err := parts[string(k)+t].apply(s.GetResources(t)); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

type part struct {
	cache *cache.LinearCache
	last  map[string]types.Resource
}

func (p *part) apply(now map[string]types.Resource) error {
	changed, gone := map[string]types.Resource{}, []string{}
	for name, r := range now {
		if old, had := p.last[name]; !had || !proto.Equal(old, r) {
			changed[name] = r
		}
	}
	for name := range p.last {
		if _, has := now[name]; !has {
			gone = append(gone, name)
		}
	}
	p.last = now
	if len(changed)+len(gone) == 0 {
		return nil
	}
	return p.cache.UpdateResources(changed, gone)
}
