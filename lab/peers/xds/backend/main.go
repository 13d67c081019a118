// Backends that say who they are: each answers with its own address.
//
//	xds-backend [-grpc N] [-tcp N] [-udp N]
//
// Prints "listening" and its addresses as JSON, {"grpc":[...],"tcp":[...],"udp":[...]}. gRPC: the health service, with the address
// in the header "backend". TCP: the address and a newline, then an echo. UDP: the address and a space before each echo.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

const anyPort = "127.0.0.1:0"

func main() {
	grpcs := flag.Int("grpc", 0, "how many of gRPC")
	tcps := flag.Int("tcp", 0, "how many of TCP")
	udps := flag.Int("udp", 0, "how many of UDP")
	flag.Parse()
	addresses := map[string][]string{
		"grpc": start(*grpcs, serveGrpc),
		"tcp":  start(*tcps, serveTcp),
		"udp":  start(*udps, serveUdp),
	}
	text, _ := json.Marshal(addresses)
	fmt.Println("listening", string(text))
	select {}
}

func start(n int, serve func() (net.Addr, error)) []string {
	addresses := []string{}
	for range n {
		a, err := serve()
		if err != nil {
			log.Fatal(err)
		}
		addresses = append(addresses, a.String())
	}
	return addresses
}

func serveGrpc() (net.Addr, error) {
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		return nil, err
	}
	name := metadata.Pairs("backend", l.Addr().String())
	s := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		grpc.SetHeader(ctx, name)
		return h(ctx, r)
	}))
	healthpb.RegisterHealthServer(s, health.NewServer())
	go s.Serve(l)
	return l.Addr(), nil
}

func serveTcp() (net.Addr, error) {
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go func() {
				defer c.Close()
				io.WriteString(c, l.Addr().String()+"\n")
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr(), nil
}

func serveUdp() (net.Addr, error) {
	p, err := net.ListenPacket("udp", anyPort)
	if err != nil {
		return nil, err
	}
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, from, err := p.ReadFrom(b)
			if err != nil {
				log.Fatal(err)
			}
			p.WriteTo(append([]byte(p.LocalAddr().String()+" "), b[:n]...), from)
		}
	}()
	return p.LocalAddr(), nil
}
