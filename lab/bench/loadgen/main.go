// Target and load generator in one, see the README in the folder above.
package main

import (
	"flag"
	"os"

	"tunnelbench/load"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "target" {
		load.Target(os.Args[2])
	}
	address := flag.String("addr", "127.0.0.1:7001", "a port that is forwarded to the target")
	via := flag.String("via", "", "host:port or unix:path of an HTTP CONNECT frontend, in place of -addr")
	to := flag.String("to", "127.0.0.1:7000", "the target as the frontend is to name it")
	files := flag.String("tls", "", "ca.crt,client.crt,client.key: mutual TLS to a -via host:port")
	load.Main(func() load.Dialer {
		if *via == "" {
			return load.DialPort(*address)
		}
		return load.DialConnect(*via, *to, load.ReadTLS(*files))
	})
}
