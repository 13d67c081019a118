package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// As in docs/services.md.
type catalog struct {
	Services []entry `json:"services"`
}

type entry struct {
	Name      string     `json:"name"`
	Ports     []port     `json:"ports"`
	Endpoints []endpoint `json:"endpoints"`
}

type port struct {
	Port uint32 `json:"port"`
}

type endpoint struct {
	Address string `json:"address"`
	Port    uint32 `json:"port"`
}

const firstPort = 8080

func newCatalog(services, endpoints int) (c catalog) {
	for i := range services {
		e := entry{Name: fmt.Sprintf("svc-%04d", i), Ports: []port{{firstPort}}}
		for j := range endpoints {
			e.Endpoints = append(e.Endpoints, endpoint{fmt.Sprintf("10.%d.%d.%d", i%250, j/250, j%250+1), firstPort})
		}
		c.Services = append(c.Services, e)
	}
	return
}

// move gives an endpoint of one service, or of each, another port.
func (c catalog) move(all bool, port uint32) {
	for i := range c.Services {
		c.Services[i].Endpoints[0].Port = port
		if !all {
			return
		}
	}
}

// write replaces the file as a whole.
func (c catalog) write(path string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
