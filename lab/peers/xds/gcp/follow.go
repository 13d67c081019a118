package main

import (
	"path/filepath"
	"syscall"
)

// follow calls changed whenever a file is renamed into path's folder. It hears of it from the kernel, as our server does: a server
// that looked every few milliseconds would be measured late, or busy.
func follow(path string, changed func()) error {
	watch, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		return err
	}
	_, err = syscall.InotifyAddWatch(watch, filepath.Dir(path), syscall.IN_MOVED_TO)
	if err != nil {
		return err
	}
	go func() {
		events := make([]byte, 64<<10)
		for {
			if _, err := syscall.Read(watch, events); err == nil {
				changed()
			}
		}
	}()
	return nil
}
