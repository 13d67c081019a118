// Command go-peer is grpc-go as a client and as a server of the interop tests.
//
// Usage: go-peer serve            prints "listening PORT"
//
//	go-peer client ADDRESS  prints "PASS name" or "FAIL name: why" per case
package main

import (
	"fmt"
	"os"
)

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		serve()
	case len(os.Args) == 3 && os.Args[1] == "client":
		if !runClient(os.Args[2]) {
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: go-peer serve | client ADDRESS")
		os.Exit(2)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
