package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// A catalog is as much of docs/services.md as is served here: services with one port.
type catalog struct {
	Services []service `json:"services"`
}

type service struct {
	Name  string `json:"name"`
	Ports []struct {
		Port     uint32 `json:"port"`
		Protocol string `json:"protocol"`
		Listen   string `json:"listen"` // IP:PORT of Envoy's listener; none without
	} `json:"ports"`
	Endpoints []struct {
		Address string `json:"address"`
		Port    uint32 `json:"port"`
	} `json:"endpoints"`
	// Makes a load assignment of it that every client rejects; of this server alone, ours would not send that.
	Spoilt bool `json:"spoilt"`
}

func readCatalog(path string) (c catalog, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	if err = json.Unmarshal(text, &c); err != nil {
		return c, err
	}
	for _, s := range c.Services {
		if len(s.Ports) != 1 {
			return c, fmt.Errorf("%s has %d ports and not one", s.Name, len(s.Ports))
		}
	}
	return c, nil
}
