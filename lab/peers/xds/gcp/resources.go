package main

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strconv"
	"time"

	xdscore "github.com/cncf/xds/go/xds/core/v3"
	matcher "github.com/cncf/xds/go/xds/type/matcher/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	udpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A kind of node: what it wants for listeners. Clusters and load assignments are the same for both.
type kind string

const (
	envoy kind = "envoy" // tcp_proxy and udp_proxy, on addresses
	grpcs kind = "grpc"  // api_listener and a route, by the service's name
)

func kindOf(n *corev3.Node) kind {
	if n.GetUserAgentName() == "envoy" {
		return envoy
	}
	return grpcs
}

var kinds = []kind{envoy, grpcs}

var typesServed = []resource.Type{resource.ClusterType, resource.EndpointType, resource.ListenerType, resource.RouteType}

// snapshotOf has content hashes for versions, one for each type, so that a changed endpoint moves load assignments only.
func snapshotOf(c catalog, k kind) *cache.Snapshot {
	m := map[resource.Type][]types.Resource{}
	add := func(t resource.Type, r types.Resource) { m[t] = append(m[t], r) }
	for _, s := range c.Services {
		add(resource.ClusterType, clusterOf(s))
		add(resource.EndpointType, assignmentOf(s))
		switch {
		case k == grpcs:
			add(resource.ListenerType, apiListenerOf(s))
			add(resource.RouteType, routeOf(s))
		case s.Ports[0].Listen != "":
			add(resource.ListenerType, proxyListenerOf(s))
		}
	}
	snapshot := &cache.Snapshot{}
	for _, t := range typesServed {
		snapshot.Resources[cache.GetResponseType(t)] = cache.NewResources(hashOf(m[t]), m[t])
	}
	return snapshot
}

var deterministic = proto.MarshalOptions{Deterministic: true}

func hashOf(resources []types.Resource) string {
	h := sha256.New()
	for _, r := range resources {
		octets, _ := deterministic.Marshal(r)
		h.Write(octets)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func clusterOf(s service) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: s.Name, ConnectTimeout: durationpb.New(5 * time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
		LbPolicy:             clusterv3.Cluster_ROUND_ROBIN}
}

func assignmentOf(s service) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: s.Name}
	if len(s.Endpoints) == 0 {
		return a
	}
	// gRPC rejects an unset locality, and drops one without a weight.
	l := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{}, LoadBalancingWeight: wrapperspb.UInt32(1)}
	for _, e := range s.Endpoints {
		port := e.Port
		if s.Spoilt { // The port for Envoy, the locality for gRPC.
			port, l.Locality = 65_536, nil
		}
		l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{HealthStatus: corev3.HealthStatus_HEALTHY,
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: addressOf(e.Address, port, corev3.SocketAddress_TCP)}}})
	}
	a.Endpoints = []*endpointv3.LocalityLbEndpoints{l}
	return a
}

func apiListenerOf(s service) *listenerv3.Listener {
	h := &hcmv3.HttpConnectionManager{StatPrefix: s.Name,
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: s.Name, ConfigSource: ads()}},
		HttpFilters: []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(&routerv3.Router{})}}}}
	return &listenerv3.Listener{Name: s.Name, ApiListener: &listenerv3.ApiListener{ApiListener: pack(h)}}
}

func routeOf(s service) *routev3.RouteConfiguration {
	to := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: s.Name}}
	all := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{}}
	return &routev3.RouteConfiguration{Name: s.Name, VirtualHosts: []*routev3.VirtualHost{{Name: s.Name, Domains: []string{"*"},
		Routes: []*routev3.Route{{Match: all, Action: &routev3.Route_Route{Route: to}}}}}}
}

func proxyListenerOf(s service) *listenerv3.Listener {
	host, digits, _ := net.SplitHostPort(s.Ports[0].Listen)
	port, _ := strconv.ParseUint(digits, 10, 16)
	if s.Ports[0].Protocol == "udp" {
		to := &xdscore.TypedExtensionConfig{Name: "route", TypedConfig: pack(&udpv3.Route{Cluster: s.Name})}
		u := &udpv3.UdpProxyConfig{StatPrefix: s.Name, RouteSpecifier: &udpv3.UdpProxyConfig_Matcher{Matcher: &matcher.Matcher{
			OnNoMatch: &matcher.Matcher_OnMatch{OnMatch: &matcher.Matcher_OnMatch_Action{Action: to}}}}}
		return &listenerv3.Listener{Name: s.Name, Address: addressOf(host, uint32(port), corev3.SocketAddress_UDP),
			UdpListenerConfig: &listenerv3.UdpListenerConfig{},
			ListenerFilters: []*listenerv3.ListenerFilter{{Name: "envoy.filters.udp_listener.udp_proxy",
				ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: pack(u)}}}}
	}
	t := &tcpv3.TcpProxy{StatPrefix: s.Name, ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: s.Name}}
	return &listenerv3.Listener{Name: s.Name, Address: addressOf(host, uint32(port), corev3.SocketAddress_TCP),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{Name: "envoy.filters.network.tcp_proxy",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(t)}}}}}}
}

func addressOf(ip string, port uint32, protocol corev3.SocketAddress_Protocol) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Protocol: protocol, Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port}}}}
}

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
}

func pack(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}
